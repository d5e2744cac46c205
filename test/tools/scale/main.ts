// npm run scale: what instances cost Postgres and their processes, with work at a steady pace or idle. CPU time, statements and
// bytes of log are counted, so other work on the machine hardly changes them. The last line is one JSON object.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import postgres from 'postgres'
import { postgresJs } from '../../../src/drivers/postgres-js.ts'
import { createOutbox } from '../../../src/index.ts'
import { resolveOptions } from '../../../src/options/options.ts'
import { cdcSql } from '../../../src/publishers/debezium/cdc.ts'
import { cdcNames } from '../../../src/store/outbox/cdc/names.ts'
import { postgresStore } from '../../../src/store/outbox/postgres.ts'
import { inBatches } from '../../../src/upkeep/retention.ts'
import { closeLater, runToVerdict, say } from '../../support/run/run-to-verdict.ts'
import { startKafka } from '../../support/servers/kafka-server.ts'
import { type PostgresServer, startPostgres } from '../../support/servers/postgres-server.ts'
import { createTopic } from '../../support/servers/topic-reader.ts'
import { parseScaleArguments, type ScaleArguments, USAGE } from './arguments.ts'
import { cpuOf, watchServer } from './cpu.ts'
import type { InstanceArguments } from './instance.ts'

const INSTANCE = fileURLToPath(new URL('./instance.ts', import.meta.url))
const WARM_UP_MS = 12_000
const ORDERS = `create table orders (id bigint generated always as identity primary key, customer text, total integer);
  create extension pg_stat_statements`

async function measureAll(args: ScaleArguments) {
  const kafka = await startKafka()
  closeLater(() => kafka.stop())
  const runs = []
  for (const processes of args.processes) {
    const topic = `scale-${processes}`
    await createTopic(kafka.brokers, topic, 6)
    const run = await measure(args, processes, kafka.brokers, topic)
    say(JSON.stringify(run))
    runs.push(run)
  }
  return { ...args, runs }
}

async function measure(
  { work, outboxes, rate, seconds, payload }: ScaleArguments,
  processes: number,
  brokers: string[],
  topic: string,
) {
  const server = await startPostgres({
    settings: {
      shared_preload_libraries: 'pg_stat_statements',
      max_connections: '500',
      // A page is logged whole once after each checkpoint; none comes in between.
      max_wal_size: '20GB',
      checkpoint_timeout: '1h',
      ...(work === 'cdc' && { wal_level: 'logical' }),
    },
  })
  closeLater(() => server.stop())
  const admin = postgres(server.url, { max: 1, onnotice: () => {} })
  const sql = postgres(server.url, { max: 1, onnotice: () => {} })
  const db = postgresJs(sql)
  await admin.unsafe(ORDERS)
  await createOutbox({ db, relay: 'cdc' }).migrate()
  const { slot } = cdcNames('postgres', { schema: 'public', name: 'outbox' })
  if (work === 'cdc') {
    await admin.unsafe(cdcSql())
    await admin`select pg_create_logical_replication_slot(${slot}, 'pgoutput')`
  }
  const databaseUrl = server.url
  const own: InstanceArguments = {
    work,
    databaseUrl,
    brokers,
    topic,
    outboxes,
    rate: rate / processes,
    payload,
  }
  const children: ChildProcess[] = []
  for (let n = 0; n < processes; n += 1) children.push(await start(own))
  await delay(WARM_UP_MS)
  if (work === 'cdc') await admin`select pg_replication_slot_advance(${slot}, pg_current_wal_lsn())`
  const before = { cpu: await cpuOfAll(children), cost: await readCost(admin) }
  const [units, end] = [await countUnits(admin), await watchServer(server.pid)]
  await delay(seconds * 1_000)
  const done = (await countUnits(admin)) - units
  if (work === 'cdc') await readLog(admin, slot)
  const postgresNs = await end()
  const [cpu, cost] = [await cpuOfAll(children), await readCost(admin)]
  const [{ connections }] = await admin<[{ connections: number }]>`
    select count(*)::int as connections from pg_stat_activity where datname = 'postgres'
      and backend_type = 'client backend' and pid <> pg_backend_pid()`
  for (const child of children) await stop(child)
  const per = work === 'idle' ? seconds * processes * outboxes : done
  const result = {
    processes,
    per: work === 'idle' ? 'second and instance' : 'unit',
    units: done,
    postgresUs: round(postgresNs / 1_000 / per),
    processUs: round((cpu - before.cpu) / 1_000 / per),
    statements: round((cost.statements - before.cost.statements) / per),
    walBytes: Math.round((cost.walBytes - before.cost.walBytes) / per),
    // One is the record. More are renewals and claims, by instances or a machine that do not keep up.
    updates: round((cost.updates - before.cost.updates) / per),
    // One of them is ours.
    connections: connections - 1,
    ...(work === 'outbox' && (await measureAfterwards(server, admin, db))),
  }
  await Promise.all([admin.end(), sql.end()])
  await server.stop()
  return result
}

/** What the rows take on the disk, and what their deletion costs. */
async function measureAfterwards(
  server: PostgresServer,
  admin: postgres.Sql,
  db: ReturnType<typeof postgresJs>,
) {
  const [rows] = await admin<[{ count: number; bytes: number; fallback: number }]>`
    select count(*)::float8 as count, pg_total_relation_size('outbox')::float8 as bytes from outbox`
  const store = postgresStore(db, resolveOptions({ db, relay: 'cdc' }))
  const [before, end] = [await readCost(admin), await watchServer(server.pid)]
  const purge = inBatches((limit, after) =>
    store.purge({ status: 'published', olderThanMs: 0, limit, after }),
  )
  for await (const _ of purge);
  await admin`vacuum outbox`
  const [postgresNs, after] = [await end(), await readCost(admin)]
  return {
    diskBytesPerRow: Math.round(rows.bytes / rows.count),
    purgeUs: round(postgresNs / 1_000 / rows.count),
    purgeWalBytes: Math.round((after.walBytes - before.walBytes) / rows.count),
  }
}

/** Without what this tool asks itself, and without BEGIN and COMMIT, of which not all are counted. */
async function readCost(admin: postgres.Sql) {
  const [cost] = await admin<[{ statements: number; walBytes: number; updates: number }]>`
    select (select n_tup_upd::float8 from pg_stat_user_tables where relname = 'outbox') as updates, coalesce(sum(calls), 0)::float8 as statements,
      pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as "walBytes"
    from pg_stat_statements where toplevel
      and query !~* '^(begin|start|commit|rollback)|pg_stat_|count.* from orders|pg_logical_slot'`
  return cost
}

async function readLog(admin: postgres.Sql, slot: string): Promise<void> {
  const { publication } = cdcNames('postgres', { schema: 'public', name: 'outbox' })
  await admin`select count(*) from pg_logical_slot_get_binary_changes(${slot}, null, null,
    'proto_version', '1', 'publication_names', ${publication})`
}

async function countUnits(admin: postgres.Sql): Promise<number> {
  const [{ count }] = await admin<[{ count: number }]>`select count(*)::int as count from orders`
  return count
}

async function cpuOfAll(children: readonly ChildProcess[]): Promise<number> {
  const all = await Promise.all(children.map(({ pid }) => cpuOf(pid!)))
  return all.reduce((sum, ns) => sum + ns, 0)
}

async function start(args: InstanceArguments): Promise<ChildProcess> {
  const flags = ['--import', 'tsx', INSTANCE, JSON.stringify(args)]
  const child = spawn(process.execPath, flags, { stdio: ['ignore', 'pipe', 'inherit'] })
  closeLater(async () => void child.kill('SIGKILL'))
  const ended = once(child, 'exit').then(() => {
    throw new Error('an instance ended before it had started')
  })
  ended.catch(() => {})
  await Promise.race([once(child.stdout, 'data'), ended])
  return child
}

async function stop(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  const [code] = await exited
  if (code !== 0) throw new Error(`an instance ended with code ${code}`)
}

const round = (value: number) => Number(value.toPrecision(3))

await runToVerdict({
  usage: USAGE,
  parse: parseScaleArguments,
  run: measureAll,
  isGood: () => true,
})
