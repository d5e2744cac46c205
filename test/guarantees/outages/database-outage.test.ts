// Postgres goes away under a running outbox. What was acknowledged meanwhile is recorded when it is back,
// and not sent again by the process that knows it was sent.
import { drizzle } from 'drizzle-orm/node-postgres'
import pg from 'pg'
import { expect, inject, it } from 'vitest'
import { createOutbox } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { connect } from '../../support/servers/database.ts'
import { defer } from '../../support/timing/deferred.ts'
import { SERVED_DRIVERS } from '../../support/drivers.ts'
import { useFixture } from '../../support/fixture.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { startProxy } from '../../support/servers/tcp-proxy.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()

async function proxyDatabase() {
  const proxy = await startProxy({ port: Number(new URL(inject('databaseUrl')).port) })
  const url = new URL(fixture.url)
  url.port = String(proxy.port)
  return { proxy, url: url.href }
}

it('records what was acknowledged during an outage longer than the threshold, and sends nothing twice', async () => {
  const { proxy, url } = await proxyDatabase()
  const pool = new pg.Pool({ connectionString: url, max: 3 })
  pool.on('error', () => {})
  const release = defer()
  const handled: string[] = []
  const outbox = createOutbox({
    db: drizzle(pool),
    publisher: handlersPublisher({
      handlers: {
        OrderCompleted: async ({ id }) => {
          await release.promise
          handled.push(id)
        },
      },
    }),
    threshold: '3s',
    publishTimeout: '2s',
    pollInterval: '20ms',
  })
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => {
    emit(Array.from({ length: 20 }, () => newEvent()))
  })
  await proxy.refuse()
  const failing = nextEvent(outbox.events, 'error', ({ step }) => step === 'record')
  release.resolve()
  await failing
  await waitUntil(async () => (await fixture.rows()).every((row) => row.available), {
    message: 'the leases ended while the database was out of reach',
  })
  await proxy.accept()
  await waitUntil(
    async () => (await fixture.rows()).every(({ status }) => status === 'published'),
    {
      message: 'the outcomes were recorded',
    },
  )
  await outbox.stop()
  await pool.end()
  await proxy.stop()
  expect(handled).toHaveLength(20)
})

it.each(SERVED_DRIVERS.map((driver) => [driver.name, driver] as const))(
  'records what was published, and what failed, when the database is back (%s)',
  async (_, driver) => {
    const { proxy, url } = await proxyDatabase()
    const proxied = driver.open(url)
    const [started, release] = [defer(), defer()]
    const handled: string[] = []
    const handle = async ({ type }: { type: string }) => {
      handled.push(type)
      if (handled.length === 2) started.resolve()
      await release.promise
      if (type === 'Bad') throw new Error('no')
    }
    const outbox = createOutbox({
      db: proxied.db,
      publisher: handlersPublisher({ handlers: { Good: handle, Bad: handle } }),
      threshold: '5m',
      poller: false,
      maxAttempts: 1,
    })
    await outbox.start()
    await outbox.withOutbox(async (__, emit) => {
      emit([newEvent({ type: 'Good' }), newEvent({ type: 'Bad' })])
    })
    await started.promise
    await proxy.refuse()
    const failed = nextEvent(outbox.events, 'error', ({ step }) => step === 'record')
    const recorded = Promise.all([
      nextEvent(outbox.events, 'event:published'),
      nextEvent(outbox.events, 'event:dead'),
    ])
    release.resolve()
    await failed
    expect((await fixture.rows()).map((row) => row.status)).toEqual(['pending', 'pending'])
    await proxy.accept()
    await recorded
    expect((await fixture.rows()).map((row) => row.status)).toEqual(['published', 'dead_letter'])
    expect(handled).toHaveLength(2)
    await outbox.stop()
    await proxied.close()
    await proxy.stop()
  },
)

it('is told of in the log when it begins and when it is over, not once per try', async () => {
  const { proxy, url } = await proxyDatabase()
  const proxied = connect(url, { backoff: () => 0, connect_timeout: 3 })
  const logger = recordingLogger()
  const outbox = fixture.handling(
    {},
    { db: proxied.db, logger, poller: true, pollInterval: '10ms' },
  )
  await outbox.start()
  const lines = () =>
    logger.lines.filter(({ fields }) => (fields as { step?: string }).step === 'poll')
  let failures = 0
  outbox.events.on('error', ({ step }) => {
    if (step === 'poll') failures += 1
  })
  await proxy.refuse()
  await waitUntil(() => failures >= 3, { message: 'the poller has tried a few times' })
  await proxy.accept()
  await waitUntil(() => lines().some(({ level }) => level === 'info'), { message: 'it is over' })
  expect(lines()).toMatchObject([
    { level: 'error', message: 'a background step failed; it will be tried again' },
    { level: 'info', message: 'a background step works again' },
  ])
  await outbox.stop()
  await proxied.close()
  await proxy.stop()
})
