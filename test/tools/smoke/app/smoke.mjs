// Runs against the installed package, on whatever runtime it is given: every entrance, every driver, both ends of an event.
// DATABASE_URL names an empty database.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { createOutbox } from 'aftercommit'
import { cdcConnector } from 'aftercommit/cdc'
import { defineConfig } from 'aftercommit/config'
import { dashboard } from 'aftercommit/dashboard'
import { driverChecks } from 'aftercommit/driver-conformance'
import { handlersPublisher } from 'aftercommit/handlers'
import { createInbox } from 'aftercommit/inbox'
import { kafkaPublisher } from 'aftercommit/kafka'
import { nodePostgres } from 'aftercommit/node-postgres'
import { otel } from 'aftercommit/otel'
import { postgresJs } from 'aftercommit/postgres-js'
import { prometheusMetrics } from 'aftercommit/prometheus'
import { publisherChecks } from 'aftercommit/publisher-conformance'
import { rabbitmqPublisher } from 'aftercommit/rabbitmq'
import { outboxTable } from 'aftercommit/schema'
import { recordingPublisher } from 'aftercommit/testing'
import { eq, sql } from 'drizzle-orm'
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres'
import { integer, pgTable } from 'drizzle-orm/pg-core'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import pg from 'pg'
import postgres from 'postgres'
import { Registry } from 'prom-client'

const url = process.env.DATABASE_URL
const client = () => postgres(url, { onnotice: () => {}, max: 5 })
const pool = () => new pg.Pool({ connectionString: url, max: 5 })
const items = pgTable('items', { id: integer().primaryKey(), n: integer() })

/** Each stack: how it is opened, and how an application begins a transaction of its own on it. */
const stacks = {
  'Drizzle on postgres.js': () => {
    const own = client()
    const db = drizzlePostgresJs({ client: own })
    return { db, begin: (work) => db.transaction(work), close: () => own.end(), builders: true }
  },
  'Drizzle on node-postgres': () => {
    const own = pool()
    const db = drizzleNodePostgres({ client: own })
    return { db, begin: (work) => db.transaction(work), close: () => own.end(), builders: true }
  },
  'postgres.js': () => {
    const own = client()
    return { db: postgresJs(own), begin: (work) => own.begin(work), close: () => own.end() }
  },
  'node-postgres': () => {
    const own = pool()
    const begin = async (work) => {
      const connection = await own.connect()
      try {
        await connection.query('begin')
        const result = await work(connection)
        await connection.query('commit')
        return result
      } catch (error) {
        await connection.query('rollback')
        throw error
      } finally {
        connection.release()
      }
    }
    return { db: nodePostgres(own), begin, close: () => own.end() }
  },
}

const event = (payload) => ({
  type: 'OrderPlaced',
  aggregateType: 'order',
  aggregateId: 'one',
  payload,
})

async function arrivals(arrived, count) {
  const deadline = Date.now() + 20_000
  while (arrived.length < count) {
    assert.ok(Date.now() < deadline, `only ${arrived.length} of ${count} arrived`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

async function tryStack(name, n) {
  const { db, begin, close, builders } = stacks[name]()
  const arrived = []
  const table = `outbox_${n}`
  const outbox = createOutbox({
    db,
    table,
    migrate: true,
    telemetry: otel(),
    publisher: handlersPublisher({
      handlers: { OrderPlaced: (one) => void arrived.push(one.payload) },
    }),
  })
  const { registry } = prometheusMetrics(outbox, { registry: new Registry() })
  await outbox.start()
  const inbox = createInbox({
    db,
    telemetry: otel(),
    consumer: name,
    table: `inbox_${n}`,
    migrate: true,
  })
  await inbox.start()

  await outbox.withOutbox(async (tx, emit) => {
    if (builders) {
      await tx.insert(items).values({ id: n, n: 1 })
      await tx.transaction((inner) => inner.update(items).set({ n: 2 }).where(eq(items.id, n)))
      assert.deepEqual(await tx.select().from(items).where(eq(items.id, n)), [{ id: n, n: 2 }])
    }
    emit(event(1))
  })
  await assert.rejects(
    outbox.withOutbox((_, emit) => {
      emit(event('rolled back'))
      throw new Error('no')
    }),
    /no/,
  )
  await arrivals(arrived, 1)
  await begin((tx) => outbox.emitIn(tx, event(2)))
  await assert.rejects(
    begin(async (tx) => {
      await outbox.emitIn(tx, event('rolled back too'))
      throw new Error('no')
    }),
    /no/,
  )
  await arrivals(arrived, 2)
  let last = 2
  if (name !== 'node-postgres') {
    const { db: watched } = outbox
    const work = async () => void outbox.emit(event((last += 1)))
    await (builders ? watched.transaction(work) : watched.begin(work))
    await arrivals(arrived, 3)
  }
  assert.deepEqual(arrived, [1, 2, 3].slice(0, last))

  const outcomes = []
  for (let delivery = 0; delivery < 2; delivery += 1) {
    const { outcome } = await inbox.once({ id: 'a', type: 'OrderPlaced' }, async () => {})
    outcomes.push(outcome)
  }
  assert.deepEqual(outcomes, ['handled', 'duplicate'])
  assert.match(await registry.metrics(), /^aftercommit_events_published_total\{/m)

  await outbox.stop()
  if (builders) {
    const rows = await db.select().from(outboxTable(table))
    assert.deepEqual(
      rows.map(({ status }) => status),
      rows.map(() => 'published'),
    )
    assert.equal(rows.length, last)
  }
  await inbox.stop()
  await close()
}

for (const make of [kafkaPublisher, rabbitmqPublisher])
  assert.throws(() => make({}), { code: 'OPTIONS_INVALID' })
assert.deepEqual(recordingPublisher().published, [])
console.log(process.versions.bun ? `Bun ${process.versions.bun}` : `Node ${process.version}`)
const setUp = client()
await drizzlePostgresJs({ client: setUp }).execute(
  sql`create table items (id integer primary key, n integer)`,
)
await setUp.end()
for (const [n, name] of Object.keys(stacks).entries()) {
  await tryStack(name, n)
  console.log(`ok ${name}`)
}

// The suites for drivers and publishers from outside.
const checking = client()
const checked = postgresJs(checking)
for (const { name, run } of driverChecks) {
  const query = (tx, text) => tx.unsafe(text)
  const nest = (tx, work) => tx.savepoint(work)
  await run({ db: checked, query, nest }).catch((cause) => {
    throw new Error(name, { cause })
  })
}
await checking.end()
for (const { name, run } of publisherChecks) {
  const arrived = []
  const OrderCompleted = ({ topic, aggregateId: key, payload, headers }) => {
    arrived.push({ topic, key, payload, headers })
  }
  const open = () => ({
    publisher: handlersPublisher({ handlers: { OrderCompleted } }),
    openTopic: async () => crypto.randomUUID(),
    arrivals: async (topic) => arrived.filter((one) => one.topic === topic),
    poison: (event) => ({ ...event, type: 'Unknown' }),
  })
  await run(open).catch((cause) => {
    throw new Error(name, { cause })
  })
}
console.log('ok the conformance checks')

const looking = client()
const page = dashboard(
  createOutbox({ db: postgresJs(looking), table: 'outbox_0', publisher: recordingPublisher() }),
  { basePath: '/', authorize: () => ({ by: 'smoke' }) },
)
for (const path of ['/', '/api/events']) {
  const response = await page(new Request(`http://localhost${path}`))
  assert.equal(response.status, 200, path)
}
await looking.end()
assert.equal(typeof cdcConnector, 'function')
assert.equal(typeof defineConfig, 'function')
console.log('ok the dashboard')

const cli = async (...args) => {
  const command = [
    './node_modules/aftercommit/dist/cli/main.js',
    ...args,
    '--json',
    '--schema',
    'cli',
  ]
  return JSON.parse((await promisify(execFile)(process.execPath, command)).stdout)
}
assert.notDeepEqual(await cli('migrate'), { applied: [] })
assert.equal((await cli('doctor')).ok, true)
console.log('ok the command')
