// A change that cannot be taken back: on a terminal a person is asked, elsewhere only --yes counts.
import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import { confirm } from '../../../src/cli/output/confirm.ts'
import { Output } from '../../../src/cli/output/output.ts'

/** A terminal, or a pipe, on which the answer has been typed. */
function outputFor(answer: string | null) {
  const isTTY = answer !== null
  const stdin = Object.assign(new PassThrough(), { isTTY })
  const stderr = Object.assign(new PassThrough(), { isTTY, hasColors: () => false })
  if (answer !== null) stdin.write(answer)
  const streams = { stdin, stderr, stdout: new PassThrough() } as never
  const out = new Output(streams, { json: false, exactTimes: false })
  return { out, asked: () => String(stderr.read() ?? '') }
}

const change = { what: 'delete 12 events for good', yes: false }

it.each(['y\n', 'yes\n', 'Y\n'])('takes %j for a yes', async (answer) => {
  const { out, asked } = outputFor(answer)
  await confirm(out, change)
  expect(asked()).toContain('This will delete 12 events for good. Go on? [y/N]')
})

it.each(['\n', 'n\n', 'yesterday\n'])('takes %j for a no', async (answer) => {
  const refused = confirm(outputFor(answer).out, change)
  await expect(refused).rejects.toMatchObject({ exitCode: 1, message: 'nothing was changed' })
})

it('refuses where there is no terminal, and names the remedy', async () => {
  const { out, asked } = outputFor(null)
  await expect(confirm(out, change)).rejects.toMatchObject({ exitCode: 2 })
  await expect(confirm(out, change)).rejects.toThrow('pass --yes')
  expect(asked()).toBe('')
})

it('does not ask those who said --yes', async () => {
  const { out, asked } = outputFor('n\n')
  await confirm(out, { ...change, yes: true })
  expect(asked()).toBe('')
})
