// Postgres goes away under a running outbox. What was acknowledged meanwhile is recorded when it is back,
// and not sent again by the process that knows it was sent.
import { drizzle } from 'drizzle-orm/node-postgres'
import pg from 'pg'
import { expect, inject, it } from 'vitest'
import { createOutbox } from '../../src/index.ts'
import { handlersPublisher } from '../../src/publishers/handlers.ts'
import { defer } from '../support/deferred.ts'
import { useFixture } from '../support/fixture.ts'
import { newEvent } from '../support/sample-events.ts'
import { startProxy } from '../support/tcp-proxy.ts'
import { nextEvent, waitUntil } from '../support/wait-until.ts'

const fixture = useFixture()

it('records what was acknowledged during an outage longer than the threshold, and sends nothing twice', async () => {
  const proxy = await startProxy({ port: Number(new URL(inject('databaseUrl')).port) })
  const url = new URL(fixture.url)
  url.port = String(proxy.port)
  const pool = new pg.Pool({ connectionString: url.href, max: 3 })
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
    threshold: '1s',
    publishTimeout: '900ms',
    pollInterval: '20ms',
  })
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => {
    emit(Array.from({ length: 20 }, () => newEvent()))
  })
  await proxy.refuse()
  const failing = nextEvent(outbox.events, 'error', ({ step }) => step === 'settle')
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
