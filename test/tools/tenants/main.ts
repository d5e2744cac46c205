// npm run tenants: many outboxes in one process, a schema for each tenant, on one pool. What they cost the process and
// Postgres: to start, with and without migrations, at rest, and at work. The last line is one JSON object.
import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Kafka, logLevel } from 'kafkajs'
import postgres from 'postgres'
import { postgresJs } from '../../../src/drivers/postgres-js.ts'
import { createOutbox } from '../../../src/index.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { closeLater, runToVerdict, say } from '../../support/run/run-to-verdict.ts'
import { requireWhole } from '../../support/run/whole-number.ts'
import { startKafka } from '../../support/servers/kafka-server.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { createTopic } from '../../support/servers/topic-reader.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const CONNECTIONS = 5
const TOPIC = 'orders'
/** A few looks and two beats. */
const REST_SECONDS = 21
/** Units of one and of two events, until each connection has seen each tenant. */
const ROUNDS = 30

const USAGE = 'npm run tenants -- [--tenants 100] [--publishers shared|apart]'

interface Arguments {
  readonly tenants: number
  readonly isShared: boolean
}

function parse(args: readonly string[]): Arguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      tenants: { type: 'string', default: '100' },
      publishers: { type: 'string', default: 'shared' },
    },
  })
  const { tenants, publishers } = values
  if (!['shared', 'apart'].includes(publishers)) throw new Error('--publishers: shared or apart')
  return { tenants: requireWhole('tenants', tenants, 1, 1_000), isShared: publishers === 'shared' }
}

async function measure({ tenants, isShared }: Arguments) {
  const server = await startPostgres({
    settings: { shared_preload_libraries: 'pg_stat_statements', 'pg_stat_statements.max': '20000' },
  })
  closeLater(() => server.stop())
  const kafka = await startKafka()
  closeLater(() => kafka.stop())
  const admin = postgres(server.url, { max: 1, onnotice: () => {} })
  closeLater(() => admin.end())
  await admin`create extension pg_stat_statements`
  const sql = postgres(server.url, { max: CONNECTIONS, onnotice: () => {} })
  closeLater(() => sql.end())
  const db = postgresJs(sql)
  await createTopic(kafka.brokers, TOPIC)
  const newPublisher = () =>
    kafkaPublisher({ kafka: new Kafka({ brokers: kafka.brokers, logLevel: logLevel.NOTHING }) })
  const shared = newPublisher()
  const newOutboxes = (migrate: boolean) =>
    Array.from({ length: tenants }, (_, n) => {
      const publisher = isShared ? shared : newPublisher()
      return createOutbox({
        db,
        publisher,
        schema: `tenant_${n}`,
        topic: TOPIC,
        migrate,
        logger: false,
      })
    })

  async function timed(work: () => Promise<unknown>): Promise<number> {
    const begunAt = performance.now()
    await work()
    return Math.round(performance.now() - begunAt)
  }
  const startAll = async (migrate: boolean) => {
    await admin`select pg_stat_statements_reset()`
    const outboxes = newOutboxes(migrate)
    const ms = await timed(() => Promise.all(outboxes.map((outbox) => outbox.start())))
    return { outboxes, ms, statements: await statements() }
  }
  async function statements(): Promise<number> {
    const [row] = await admin`
      select sum(calls)::int as calls from pg_stat_statements where query not like '%pg_stat%'`
    return (row as { calls: number }).calls
  }
  /** What a connection of the pool has for itself, on average. */
  async function mbPerConnection(): Promise<number> {
    const pids = await admin<{ pid: number }[]>`
      select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`
    const sizes = await Promise.all(pids.map(({ pid }) => privateMb(pid)))
    return rounded(sizes.reduce((sum, size) => sum + size, 0) / sizes.length)
  }

  say('starting with migrations to apply')
  const first = await startAll(true)
  await Promise.all(first.outboxes.map((outbox) => outbox.stop()))
  say('starting with migrations that are applied')
  const second = await startAll(true)
  await Promise.all(second.outboxes.map((outbox) => outbox.stop()))
  say('starting without migrations')
  const heapBefore = usedHeap()
  const third = await startAll(false)
  const { outboxes } = third
  await delay(2_000)
  const kbStarted = rounded((usedHeap() - heapBefore) / 1_000 / tenants)
  const mbAtRest = await mbPerConnection()
  say(`resting for ${REST_SECONDS} s`)
  await admin`select pg_stat_statements_reset()`
  const cpuBefore = process.cpuUsage()
  await delay(REST_SECONDS * 1_000)
  const { user, system } = process.cpuUsage(cpuBefore)
  const statementsPerSecond = rounded((await statements()) / REST_SECONDS)
  say('working')
  let [published, emitted] = [0, 0]
  for (const { events } of outboxes) events.on('event:published', () => (published += 1))
  for (let round = 0; round < ROUNDS; round += 1) {
    const events = round % 2 === 0 ? [newEvent()] : [newEvent(), newEvent()]
    emitted += events.length * tenants
    await Promise.all(outboxes.map((one) => one.withOutbox((_, emit) => emit(events))))
  }
  await waitUntil(() => published >= emitted, { message: 'everything is published' })
  const connections = process.getActiveResourcesInfo().filter((one) => one === 'TCPSocketWrap')
  const mbAfterWork = await mbPerConnection()
  const kbAfterWork = rounded((usedHeap() - heapBefore) / 1_000 / tenants)
  const stopMs = await timed(() => Promise.all(outboxes.map((outbox) => outbox.stop())))
  return {
    tenants,
    publishers: isShared ? 'shared' : 'apart',
    startMs: { migrating: first.ms, migrated: second.ms, withoutMigrate: third.ms },
    statementsAtStart: third.statements,
    stopMs,
    heapKbPerOutbox: { started: kbStarted, afterWork: kbAfterWork },
    atRest: { statementsPerSecond, cpuPercent: rounded((user + system) / 10_000 / REST_SECONDS) },
    sockets: connections.length,
    postgresMbPerConnection: { started: mbAtRest, afterWork: mbAfterWork },
  }
}

function usedHeap(): number {
  const { gc } = globalThis as { gc?: () => void }
  gc!()
  gc!()
  return process.memoryUsage().heapUsed
}

async function privateMb(pid: number): Promise<number> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8')
  return Number(/Private_Dirty:\s+(\d+)/.exec(rollup)![1]) / 1_024
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10
}

await runToVerdict({ usage: USAGE, parse, run: measure, isGood: () => true })
