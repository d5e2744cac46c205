// The cells of the matrix: each is one run of the suite on its own pair of servers. Not the full product: no
// statement and no request depends on both versions at once.
import {
  defaultKafka,
  defaultPostgres,
  kafkaReleases,
  postgresReleases,
} from '../../support/servers/server-versions.ts'
import type { MatrixArguments } from './arguments.ts'

export interface Cell {
  readonly name: string
  readonly postgres: string
  readonly kafka: string
  readonly pgbouncer: boolean
  /** What vitest is to run. */
  readonly files: readonly string[]
}

const EVERYTHING = ['test/integration', 'test/guarantees']

/** Where a version can matter most: every statement of the store, and everything the Kafka publisher does. */
const TELLING = [
  'test/integration/drivers.test.ts',
  'test/integration/store.test.ts',
  'test/integration/versions.test.ts',
  'test/integration/publishers/kafka.test.ts',
  'test/guarantees/operations/cleanup.test.ts',
  'test/guarantees/dead-letters/dead-letters.test.ts',
  'test/guarantees/operations/health.test.ts',
  'test/guarantees/leases/leases.test.ts',
  'test/guarantees/order/lock-keys.test.ts',
  'test/guarantees/leases/many-pollers.test.ts',
  'test/guarantees/operations/migrations.test.ts',
  'test/guarantees/operations/partitions.test.ts',
  'test/guarantees/order/order.test.ts',
  'test/guarantees/operations/pgbouncer.test.ts',
  'test/guarantees/commit/saved-or-nothing.test.ts',
  'test/guarantees/commit/savepoints.test.ts',
]

/** What the planner of a version decides; PgBouncer has no part in it. */
const PLANNED = [
  'test/guarantees/order/hot-aggregate.test.ts',
  'test/guarantees/operations/kept-plans.test.ts',
  'test/guarantees/operations/stale-statistics.test.ts',
]

export function chooseCells({ short, postgres, kafka, pgbouncer }: MatrixArguments): Cell[] {
  const filesOf = (pooled: boolean) => {
    if (!short) return EVERYTHING
    return pooled ? TELLING : [...TELLING, ...PLANNED]
  }
  const cell = (postgresVersion: string, kafkaVersion: string, pooled = false): Cell => ({
    name: `Postgres ${postgresVersion}${pooled ? ' behind PgBouncer' : ''}, Kafka ${kafkaVersion}`,
    postgres: postgresVersion,
    kafka: kafkaVersion,
    pgbouncer: pooled,
    files: filesOf(pooled),
  })
  if (postgres !== null || kafka !== null || pgbouncer) {
    return [cell(postgres ?? defaultPostgres, kafka ?? defaultKafka, pgbouncer)]
  }
  const behindPgbouncer = cell(defaultPostgres, defaultKafka, true)
  if (short) return [cell(oldest(postgresReleases), oldest(kafkaReleases)), behindPgbouncer]
  const otherKafkas = [...kafkaReleases.keys()].filter((version) => version !== defaultKafka)
  return [
    ...[...postgresReleases.keys()].map((version) => cell(version, defaultKafka)),
    ...otherKafkas.map((version) => cell(defaultPostgres, version)),
    behindPgbouncer,
  ]
}

/** The servers are the cell's own, whatever the caller's environment names, and Kafka is never left out. */
export function environmentOf(cell: Cell, inherited: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { DATABASE_URL: _, KAFKA_BROKERS: __, ...rest } = inherited
  return {
    ...rest,
    POSTGRES_VERSION: cell.postgres,
    KAFKA_VERSION: cell.kafka,
    KAFKA_REQUIRED: 'true',
    PGBOUNCER: String(cell.pgbouncer),
  }
}

function oldest(releases: ReadonlyMap<string, unknown>): string {
  return [...releases.keys()][0]!
}
