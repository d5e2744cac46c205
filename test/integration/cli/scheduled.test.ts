// Scheduled events as the commands show them: until when they wait, and that they are no trouble.
import { expect, it } from 'vitest'
import { readCli, runCli } from '../../support/built-cli.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { useFixture } from '../../support/fixture.ts'

const fixture = useFixture({ partitioned: false })
const here = () => ({ url: fixture.url })
const run = (...args: string[]) => runCli(args, here())

it('lists and shows until when an event is scheduled, and counts it as no trouble', async () => {
  const outbox = fixture.handling({})
  const { id, other } = await outbox.withOutbox(async (_, emit) => ({
    id: emit(newEvent({ deliverAfter: '30m' })),
    other: emit(newEvent()),
  }))
  await fixture.sql`update outbox set status = 'published' where id = ${other}`
  const listed = await readCli<{ events: object[] }>(['list', '--status', 'scheduled'], here())
  expect(listed.events).toMatchObject([{ id, status: 'scheduled' }])
  expect((await run('list')).stdout).toMatch(
    /(?:ago|just now) +scheduled +OrderCompleted .* in (?:30|29) min/,
  )
  expect((await run('show', id)).stdout).toMatch(/scheduled for +.*in (?:30|29) min/)
  expect((await run('show', other)).stdout).not.toContain('scheduled')
  const status = await run('status', '--max-pending', '0', '--max-lag', '1s')
  expect(status.code).toBe(0)
  expect(status.stdout).toMatch(/scheduled +1 not due yet/)
})
