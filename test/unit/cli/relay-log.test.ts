// The log lines of commands: names and errors that others wrote reach the terminal without control characters.
import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import { Output } from '../../../src/cli/output/output.ts'
import { noteLogger, relayLogger, remarkLogger } from '../../../src/cli/relay-log.ts'

function streamsOf(json: boolean) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const streams = { stdin: new PassThrough(), stdout, stderr } as never
  const out = new Output(streams, { json, exactTimes: false })
  return { out, printed: () => String(stdout.read() ?? '') + String(stderr.read() ?? '') }
}

// CSI as one character: "erase the screen", and a title of the terminal.
const NASTY = 'a\u009b2Jb\u009dtitle\u009cc\u007f\u001b[2Jd'

it.each([relayLogger, noteLogger, remarkLogger])('%o prints no control character', (loggerOf) => {
  const { out, printed } = streamsOf(false)
  const err = new Error(NASTY)
  loggerOf(out).warn({ topic: NASTY, err }, `the topic ${NASTY} is paused`)
  const text = printed()
  expect(text).toContain('the topic a 2Jb title c [2Jd is paused {"topic":"a 2Jb title c')
  // oxlint-disable-next-line no-control-regex
  expect(text.trimEnd()).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/)
})
