// The database is away when an outcome is to be recorded: the outcome waits, and nothing is sent twice.
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { connect, type TestConnection } from '../support/database.ts'
import { defer } from '../support/deferred.ts'
import { useFixture } from '../support/fixture.ts'
import { newEvent } from '../support/sample-events.ts'
import { startProxy, type TcpProxy } from '../support/tcp-proxy.ts'
import { nextEvent } from '../support/wait-until.ts'

const fixture = useFixture()
let proxy: TcpProxy
let proxied: TestConnection

beforeAll(async () => {
  proxy = await startProxy({ port: Number(new URL(inject('databaseUrl')).port) })
  const url = new URL(fixture.url)
  url.port = String(proxy.port)
  proxied = connect(url.href, { backoff: () => 0 })
})
afterAll(async () => {
  await proxied.close()
  await proxy.stop()
})

it('records what was published, and what failed, when the database is back', async () => {
  const [started, release] = [defer(), defer()]
  const handled: string[] = []
  const handle = async ({ type }: { type: string }) => {
    handled.push(type)
    if (handled.length === 2) started.resolve()
    await release.promise
    if (type === 'Bad') throw new Error('no')
  }
  const outbox = fixture.handling(
    { Good: handle, Bad: handle },
    { db: proxied.db, threshold: '5m', maxAttempts: 1 },
  )
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => {
    emit([newEvent({ type: 'Good' }), newEvent({ type: 'Bad' })])
  })
  await started.promise
  await proxy.refuse()
  const failed = nextEvent(outbox.events, 'error', ({ step }) => step === 'settle')
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
})
