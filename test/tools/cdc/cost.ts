// What a relayed event costs Postgres, by how its row goes away: deleted later by retention, in the transaction that
// inserted it, or with its partition. Each way includes the vacuum after it, and reading the log as a connector does.
import postgres from 'postgres'
import { readCost, watchBackends } from '../../../bench/server-cost.ts'
import { createOutbox } from '../../../src/index.ts'
import { postgresJs } from '../../../src/drivers/postgres-js.ts'
import { resolveOptions } from '../../../src/options/options.ts'
import { cdcNames } from '../../../src/store/outbox/cdc/names.ts'
import { postgresStore } from '../../../src/store/outbox/postgres.ts'
import { cdcSql } from '../../../src/publishers/debezium/cdc.ts'
import { inBatches } from '../../../src/upkeep/retention.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { closeLater, say } from '../../support/run/run-to-verdict.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'

const WAYS = ['retention', 'same transaction', 'dropped partition'] as const
type Way = (typeof WAYS)[number]

const WRITERS = 4
const PAYLOAD = { total: 42, note: 'x'.repeat(300) }

export async function measureCosts(events: number) {
  const costs: Record<string, { walBytes: number; cpuMicroseconds: number | null }> = {}
  for (const way of WAYS) {
    costs[way] = await measure(way, events)
    say(`${way}: ${JSON.stringify(costs[way])}`)
  }
  return { unit: 'per event', events, costs }
}

async function measure(way: Way, events: number) {
  const settings = {
    wal_level: 'logical',
    autovacuum: 'off',
    shared_preload_libraries: 'pg_stat_statements',
    // A page is logged whole once after each checkpoint; none comes in between.
    max_wal_size: '20GB',
    checkpoint_timeout: '1h',
  }
  const server = await startPostgres({ settings })
  closeLater(() => server.stop())
  const [admin, sql] = [
    postgres(server.url, { max: 1 }),
    postgres(server.url, { max: WRITERS + 1 }),
  ]
  const db = postgresJs(sql)
  const outbox = createOutbox({ db, relay: 'cdc', logger: false })
  const store = postgresStore(db, resolveOptions({ db, relay: 'cdc' }))
  await outbox.migrate({ partitioned: way === 'dropped partition' })
  await admin.unsafe(`create extension pg_stat_statements; ${cdcSql()}`)
  const { slot, publication } = cdcNames('postgres', { schema: 'public', name: 'outbox' })
  await admin`select pg_create_logical_replication_slot(${slot}, 'pgoutput')`
  const write = async (count: number) => {
    for (let n = 0; n < count; n += 1) {
      await sql.begin(async (tx) => {
        const id = await outbox.emitIn(tx, newEvent({ payload: PAYLOAD }))
        if (way === 'same transaction') await tx`delete from outbox where id = ${id}`
      })
    }
  }
  await write(200)
  await admin`checkpoint`
  const [before, watch] = [
    await readCost(admin, 'postgres'),
    await watchBackends(admin, 'postgres'),
  ]
  await Promise.all(Array.from({ length: WRITERS }, () => write(Math.ceil(events / WRITERS))))
  if (way === 'retention') {
    const purge = inBatches((limit, after) =>
      store.purge({ status: 'published', olderThanMs: 0, limit, after }),
    )
    for await (const _ of purge);
  }
  await admin.unsafe(way === 'dropped partition' ? 'truncate outbox' : 'vacuum outbox')
  await admin`select count(*) from pg_logical_slot_get_binary_changes(${slot}, null, null,
    'proto_version', '1', 'publication_names', ${publication})`
  const [cpu, after] = [await watch.end(), await readCost(admin, 'postgres')]
  await Promise.all([admin.end(), sql.end()])
  await server.stop()
  return {
    walBytes: Math.round((after.walBytes - before.walBytes) / events),
    cpuMicroseconds: cpu === null ? null : Math.round(cpu / events),
  }
}
