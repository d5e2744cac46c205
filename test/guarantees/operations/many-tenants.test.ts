// A hundred outboxes in one process, a schema for each tenant, on one pool of five connections and one publisher: they
// start, deliver, stay idle and stop, and each of them costs little.
import { runInNewContext } from 'node:vm'
import { setFlagsFromString } from 'node:v8'
import type { Producer } from 'kafkajs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createOutbox, type Database, type Outbox, type Publisher } from '../../../src/index.ts'
import { postgresJs } from '../../../src/drivers/postgres-js.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'
import { describeWithKafka, kafkaBrokers, quietKafka } from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked } from '../../support/doubles/scripted-publisher.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { createDatabase, openClient, type TestDatabase } from '../../support/servers/database.ts'
import { createTopic, readTopic } from '../../support/servers/topic-reader.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const TENANTS = 100
const CONNECTIONS = 5

let database: TestDatabase
let sql: ReturnType<typeof openClient>
let db: Database<unknown>
let statements = 0
let [transactions, mostTransactions] = [0, 0]
const started: Outbox[] = []

beforeAll(async () => {
  database = await createDatabase()
  sql = openClient(database.url, { max: CONNECTIONS })
  const counted = postgresJs(sql) as Database<unknown>
  db = {
    ...counted,
    query: (...given) => {
      statements += 1
      return counted.query(...given)
    },
    async begin(...given) {
      transactions += 1
      mostTransactions = Math.max(mostTransactions, transactions)
      try {
        return await counted.begin(...given)
      } finally {
        transactions -= 1
      }
    },
  }
})
afterEach(() => stopAll())
afterAll(async () => {
  await sql.end({ timeout: 0 })
  await database.drop()
})

async function stopAll() {
  await Promise.all(started.splice(0).map((outbox) => outbox.stop()))
}

/** Says which calls it got. */
function sharedPublisher() {
  const calls: string[] = []
  const sent: { topic: string; payload: string }[] = []
  const publisher: Publisher = {
    name: 'shared',
    connect: async () => void calls.push('connect'),
    async publish(events) {
      sent.push(...events.map(({ topic, payload }) => ({ topic, payload })))
      return events.map((event) => acked(event) as never)
    },
    disconnect: async () => void calls.push('disconnect'),
  }
  return { publisher, calls, sent }
}

function outboxesOf(publisher: Publisher, options: object = {}): Outbox[] {
  return Array.from({ length: TENANTS }, (_, n) =>
    createOutbox({
      db,
      schema: `tenant_${n}`,
      topic: `tenant-${n}.orders`,
      publisher,
      cleanup: false,
      logger: false,
      ...options,
    }),
  ) as Outbox[]
}

async function startAll(outboxes: readonly Outbox[]): Promise<void> {
  started.push(...outboxes)
  await Promise.all(outboxes.map((outbox) => outbox.start()))
}

function usedHeap(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  collect()
  return process.memoryUsage().heapUsed
}

const rowsOf = (n: number) => sql`
  select status, payload->>'tenant' as tenant from ${sql(`tenant_${n}`)}.outbox`

describe('a hundred outboxes on a pool of five', () => {
  it('start with migrations, deliver the events of each tenant from its own table, and stop', async () => {
    const { publisher, calls, sent } = sharedPublisher()
    const outboxes = outboxesOf(publisher, { migrate: true })
    await startAll(outboxes)
    // The other four connections are left for what else the outboxes do at start.
    expect(mostTransactions).toBe(1)
    await Promise.all(
      outboxes.map((outbox, tenant) =>
        outbox.withOutbox((_, emit) => emit(newEvent({ payload: { tenant } }))),
      ),
    )
    await waitUntil(() => sent.length === TENANTS, { message: () => `${sent.length} were sent` })
    expect(new Map(sent.map(({ topic, payload }) => [topic, payload]))).toEqual(
      new Map(outboxes.map((_, n) => [`tenant-${n}.orders`, JSON.stringify({ tenant: n })])),
    )
    await stopAll()
    for (let n = 0; n < TENANTS; n += 1) {
      expect([...(await rowsOf(n))]).toEqual([{ status: 'published', tenant: String(n) }])
    }
    expect(calls).toEqual(['connect', 'disconnect'])
  })

  it('leave what one process left behind to the next, each in its own table', async () => {
    const { publisher, sent } = sharedPublisher()
    const left = outboxesOf(publisher, { immediate: false, poller: false })
    await Promise.all(
      left.map((outbox, tenant) =>
        outbox.withOutbox((_, emit) => emit(newEvent({ payload: { left: tenant } }))),
      ),
    )
    await startAll(outboxesOf(publisher))
    await waitUntil(() => sent.length === TENANTS, { message: () => `${sent.length} were sent` })
    expect(new Set(sent.map(({ topic }) => topic)).size).toBe(TENANTS)
  })

  it('cost eight statements to start, one to stop, one for each look and each beat between, and under 200 kB', async () => {
    const { publisher } = sharedPublisher()
    const heapBefore = usedHeap()
    statements = 0
    const begunAt = performance.now()
    const outboxes = outboxesOf(publisher, { pollInterval: '2s' })
    let looks = 0
    for (const { events } of outboxes) events.on('poll:done', () => (looks += 1))
    await startAll(outboxes)
    await waitUntil(() => looks >= 4 * TENANTS, { message: 'each has looked four times' })
    const heapPerOutbox = (usedHeap() - heapBefore) / TENANTS
    // Each waits for its look under way, so that all looks are counted.
    await stopAll()
    const laterBeats = TENANTS * Math.floor((performance.now() - begunAt) / 10_000)
    const firstLooks = TENANTS
    expect(statements).toBeLessThanOrEqual((8 + 1) * TENANTS + looks - firstLooks + laterBeats)
    expect(heapPerOutbox).toBeLessThan(200_000)
  })

  it('keep their publisher while one of them runs, and may start and stop again', async () => {
    const { publisher, calls, sent } = sharedPublisher()
    const [one, other, last] = outboxesOf(publisher) as [Outbox, Outbox, Outbox]
    await startAll([one, other])
    await one.stop()
    await one.stop()
    // Never started, so it has nothing to close.
    await last.stop()
    expect(calls).toEqual(['connect'])
    await one.start()
    await other.stop()
    expect(calls).toEqual(['connect'])
    await one.withOutbox((_, emit) => emit(newEvent()))
    await waitUntil(() => sent.length === 1, { message: 'it is sent' })
    await one.stop()
    expect(calls).toEqual(['connect', 'disconnect'])
  })
})

describeWithKafka('outboxes that share a publisher for Kafka', () => {
  it('share its connections, which stay open until the last one stops', async () => {
    const topic = uniqueName('tenants')
    await createTopic(kafkaBrokers(), topic)
    const kafka = quietKafka(kafkaBrokers())
    const open = new Set<Producer>()
    let made = 0
    const watched = {
      producer(...given: Parameters<typeof kafka.producer>) {
        const producer = kafka.producer(...given)
        made += 1
        producer.on('producer.connect', () => open.add(producer))
        producer.on('producer.disconnect', () => open.delete(producer))
        return producer
      },
    }
    const publisher = kafkaPublisher({ kafka: watched })
    const outboxes = outboxesOf(publisher, { topic, migrate: true })
    await startAll(outboxes)
    const last = outboxes.pop()!
    const emit = (outbox: Outbox) => outbox.withOutbox((_, emitEvent) => emitEvent(newEvent()))
    const allPublished = Promise.all(
      outboxes.map(({ events }) => nextEvent(events, 'event:published')),
    )
    await Promise.all(outboxes.map(emit))
    await allPublished
    const failures: unknown[] = []
    last.events.on('event:failed', (failure) => failures.push(failure))
    const published = nextEvent(last.events, 'event:published')
    await Promise.all([...outboxes.map((outbox) => outbox.stop()), emit(last)])
    expect((await published).path).toBe('immediate')
    expect(failures).toEqual([])
    expect(open.size).toBe(1)
    await last.stop()
    expect(open.size).toBe(0)
    expect(made).toBe(1)
    const reader = await readTopic(kafkaBrokers(), topic)
    expect(await reader.readToEnd()).toHaveLength(TENANTS)
    await reader.stop()
  })
})
