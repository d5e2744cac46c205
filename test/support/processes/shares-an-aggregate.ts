// One of several instances of a service that all write to one aggregate, and each to some of its own. It
// goes on until the events of all of them are out, and ends by saying what went out through this one.
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { createOutbox } from '../../../src/index.ts'
import { kafkaClient, type KafkaClientName } from '../kafka-clients.ts'
import { nextEvent, waitUntil } from '../timing/wait-until.ts'

export type Setup = {
  url: string
  broker: string
  client: KafkaClientName
  topic: string
  name: string
  instances: number
  /** How many events it emits on the aggregate that all share. */
  sharedEvents: number
  /** How many it emits meanwhile on aggregates of its own, after a first one that finds the broker. */
  ownEvents: number
}

export type Report = {
  /** The number of shared events in each call of the publisher that had any. */
  sharedBatches: number[]
  /** How many of its own events left right after their commit. */
  ownImmediate: number
}

const [json] = process.argv.slice(2) as [string]
const {
  url,
  broker,
  client: kafka,
  topic,
  name,
  instances,
  sharedEvents,
  ownEvents,
} = JSON.parse(json) as Setup
const report: Report = { sharedBatches: [], ownImmediate: 0 }
const isShared = (event: { aggregateId: string }) => event.aggregateId === 'shared'

const client = postgres(url, { max: 5 })
const db = drizzle(client)
const real = kafkaClient(kafka).publisher([broker])
const outbox = createOutbox({
  db,
  publisher: {
    ...real,
    async publish(events) {
      const shared = events.filter(isShared).length
      if (shared > 0) report.sharedBatches.push(shared)
      return await real.publish(events)
    },
  },
  topic,
  pollInterval: '50ms',
  // Longer than a busy machine lets a process wait for its turn.
  threshold: '30s',
  publishTimeout: '15s',
})
outbox.events.on('event:published', ({ event, path }) => {
  if (!isShared(event) && path === 'immediate') report.ownImmediate += 1
})

async function increment(counter: string, on: Pick<typeof db, 'execute'> = db): Promise<number> {
  const [row] = await on.execute(
    sql`update counters set n = n + 1 where name = ${counter} returning n`,
  )
  return row!['n'] as number
}

async function waitForAll(counter: 'ready' | 'done'): Promise<void> {
  await increment(counter)
  await waitFor(`all are ${counter}`, async () => {
    const [row] = await db.execute(sql`select n from counters where name = ${counter}`)
    return row!['n'] === instances
  })
}

async function waitFor(message: string, predicate: () => boolean | Promise<boolean>) {
  await waitUntil(predicate, { message: `${name}: ${message}`, timeoutMs: 60_000 })
}

async function emitOwn(payload: number): Promise<void> {
  await outbox.withOutbox((_, emit) => {
    const aggregateId = `${name}-${payload % 5}`
    emit({ type: 'Counted', aggregateType: 'counter', aggregateId, payload })
  })
}

let sharedBegun = 0
async function writeShared(): Promise<void> {
  while (sharedBegun < sharedEvents) {
    sharedBegun += 1
    await outbox.withOutbox(async (tx, emit) => {
      // Its lock is held until COMMIT, so the order of the numbers is the order of the commits.
      const payload = await increment('shared', tx)
      const headers = { 'written-by': name }
      emit({ type: 'Counted', aggregateType: 'counter', aggregateId: 'shared', payload, headers })
    })
  }
}

async function writeOwn(): Promise<void> {
  for (let n = 1; n <= ownEvents; n += 1) {
    const turn = (n / ownEvents) * sharedEvents
    await waitFor('the shared events have got so far', () => sharedBegun >= turn)
    await emitOwn(n)
  }
}

await outbox.start()
const connected = nextEvent(outbox.events, 'event:published')
await emitOwn(0)
await connected
await waitForAll('ready')
await Promise.all([writeShared(), writeShared(), writeOwn()])
await waitForAll('done')
await waitFor('everything is published', async () => {
  const pending = await db.execute(sql`select 1 from outbox where status = 'pending' limit 1`)
  return pending.length === 0
})
await outbox.stop()
await client.end()
console.log(JSON.stringify(report))
