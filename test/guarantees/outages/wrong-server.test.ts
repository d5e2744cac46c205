// After a fail-over some clients still reach the wrong server: a standby, or the old primary. They say so, publish nothing
// that the new primary does not have, and go on by themselves when the address leads to the right one.
import { afterEach, expect, it } from 'vitest'
import { createOutbox } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { type FollowedOutbox, startFollowed } from '../../support/followed-outbox.ts'
import { connect, type TestConnection } from '../../support/servers/database.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

let followed: FollowedOutbox
const connections: TestConnection[] = []
afterEach(async () => {
  await Promise.all(connections.splice(0).map((one) => one.close()))
  await followed.stop()
})

function connectTo({ url }: { readonly url: string }): TestConnection {
  const connection = connect(url)
  connections.push(connection)
  return connection
}

/** An instance that saves an event and dies before it can send it. */
async function leaveBehind(server: { readonly url: string }, payload: unknown): Promise<void> {
  const { db } = connectTo(server)
  const outbox = createOutbox({ db, publisher: handlersPublisher({ handlers: {} }), logger: false })
  await outbox.withOutbox((_, emit) => emit(newEvent({ payload })))
}

const REMEDY = /in a read-only transaction; .*connect to the primary/

it('says that a standby takes no writes, and goes on when the address leads to the primary', async () => {
  const logger = recordingLogger()
  followed = await startFollowed('synchronous', { logger })
  const { pair, outbox, emit, delivered, replicated, seen } = followed
  await emit('before')
  await delivered('before')
  await leaveBehind(pair.primary, 'left behind')
  await replicated()
  const failing = nextEvent(
    outbox.events,
    'error',
    ({ step, error }) => step === 'poll' && /read-only/.test(error.message),
  )
  pair.point(pair.standby)
  pair.cut()

  const refusal = await waitUntil(
    () =>
      emit('refused').then(
        () => null,
        (error: Error) => /read-only/.test(error.message) && error,
      ),
    { message: 'a unit of work is refused' },
  )
  expect(refusal).toMatchObject({
    code: 'STORE_FAILED',
    message: expect.stringMatching(REMEDY) as string,
    cause: expect.objectContaining({ code: '25006' }) as unknown,
  })
  expect((await failing).error).toMatchObject({ message: expect.stringMatching(REMEDY) as string })
  expect((await outbox.health()).flags).toContainEqual({
    flag: 'database',
    message: expect.stringMatching(/takes no writes.*connect to the primary/) as string,
  })
  const lines = logger.lines.filter(({ level }) => level === 'error')
  expect(lines.map(({ message }) => message)).toContain(
    'a background step failed; it will be tried again',
  )
  const other = createOutbox({
    db: connectTo(pair.standby).db,
    publisher: handlersPublisher({ handlers: {} }),
    logger: false,
  })
  await expect(other.start()).rejects.toThrow(REMEDY)

  pair.point(pair.primary)
  pair.cut()
  await followed.insist('after')
  await delivered('left behind', 'after')
  expect(new Set(seen.map(({ payload }) => payload))).toEqual(
    new Set(['before', 'left behind', 'after']),
  )
  expect(seen).toHaveLength(3)
  await waitUntil(async () => (await outbox.health()).ok, { message: 'all is well' })
})

it('confirms and publishes nothing on an old primary that came back, and goes on at the new one', async () => {
  followed = await startFollowed('synchronous')
  const { pair, emit, insist, delivered, seen } = followed
  await emit('before')
  await delivered('before')
  const old = await pair.lose()
  // It does not know that it is no longer the primary. Nothing follows it.
  await old.start()
  const { client } = connectTo(old)
  const waiting = async (query: string) => {
    const sessions = await client<{ pid: number }[]>`
      select pid from pg_stat_activity where wait_event = 'SyncRep' and query ilike ${query}`
    return sessions[0]
  }
  const split = emit('split').then(
    () => 'confirmed',
    () => 'unknown',
  )
  const session = await waitUntil(() => waiting('commit%'), { message: 'its COMMIT waits' })
  // The wait is ended from outside: now the event can be seen on the old primary, and a claim finds it.
  await client`select pg_terminate_backend(${session.pid}::int)`
  expect(await split).toBe('unknown')
  const rows = await client`select payload::text as payload from outbox where status <> 'published'`
  expect(rows).toEqual([{ payload: '"split"' }])
  await waitUntil(() => waiting('/* aftercommit: claim%'), { message: 'a claim waits' })
  expect(seen.map(({ payload }) => payload)).toEqual(['before'])

  pair.point(pair.primary)
  pair.cut()
  await pair.addStandby()
  await insist('after')
  await delivered('after')
  expect(seen.map(({ payload }) => payload)).toEqual(['before', 'after'])
})
