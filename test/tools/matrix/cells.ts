// The cells of the matrix: each is one run of the suite on its own pair of servers. Not the full product: no
// statement and no request depends on both versions at once. Two cells run what concerns Kafka on @platformatic/kafka, of
// the version that package.json installs and of the next one.
import {
  defaultKafka,
  defaultPostgres,
  kafkaReleases,
  postgresReleases,
} from '../../support/servers/server-versions.ts'
import type { MatrixArguments, PlatformaticMajor } from './arguments.ts'
import { NEWER_CLIENT, NEWER_NODE } from './newer-client.ts'

export interface Cell {
  readonly name: string
  readonly postgres: string
  readonly kafka: string
  readonly pgbouncer: boolean
  /** The version of @platformatic/kafka if the cell is about that client. Version 2 runs on a Node of its own. */
  readonly platformatic: PlatformaticMajor | null
  /** Whether the role of the tests has no more rights than `aftercommit grants` gives to a service. */
  readonly limitedRole: boolean
  /** Whether query builders and ORMs are left out: neither a version nor a role makes a difference between them. */
  readonly onlyClients: boolean
  /** What vitest is to run. */
  readonly files: readonly string[]
}

const EVERYTHING = ['test/integration', 'test/guarantees']

/** Where Postgres, or a pooler in front of it, can matter most: every statement of the store, and what rests on sessions. */
const OF_POSTGRES = [
  'test/integration/drivers.test.ts',
  'test/integration/store.test.ts',
  'test/integration/versions.test.ts',
  'test/guarantees/operations/cleanup.test.ts',
  'test/guarantees/dead-letters/dead-letters.test.ts',
  'test/guarantees/operations/health.test.ts',
  'test/guarantees/leases/leases.test.ts',
  'test/guarantees/order/lock-keys.test.ts',
  'test/guarantees/leases/many-pollers.test.ts',
  'test/guarantees/operations/migrations.test.ts',
  'test/guarantees/operations/partitions.test.ts',
  'test/guarantees/order/order.test.ts',
  'test/guarantees/commit/saved-or-nothing.test.ts',
  'test/guarantees/commit/savepoints.test.ts',
]

/**
 * What only versions decide, so the cell behind PgBouncer leaves it out: everything the Kafka publisher does, the planner,
 * and a test that starts a PgBouncer of its own.
 */
const OF_VERSIONS = [
  'test/integration/publishers/kafka.test.ts',
  'test/guarantees/operations/pgbouncer.test.ts',
  'test/guarantees/order/hot-aggregate.test.ts',
  'test/guarantees/operations/kept-plans.test.ts',
  'test/guarantees/operations/stale-statistics.test.ts',
]

/** Every statement of the store, and the units of work, commits and upkeep around them. */
const OF_ROLE = [
  'test/integration/store.test.ts',
  'test/guarantees/commit/saved-or-nothing.test.ts',
  'test/guarantees/commit/savepoints.test.ts',
  'test/guarantees/dead-letters/dead-letters.test.ts',
  'test/guarantees/leases/leases.test.ts',
  'test/guarantees/operations/cleanup.test.ts',
  'test/guarantees/operations/health.test.ts',
  'test/guarantees/order/order.test.ts',
]

/** Whatever a Kafka client can break: conformance, partitions, poison and order, and in the long form all of the rest. */
const OF_CLIENT = [
  'test/integration/versions.test.ts',
  'test/integration/publishers/platformatic-kafka.test.ts',
  'test/integration/publishers/kafka-partitions.test.ts',
  'test/guarantees/dead-letters/poison.test.ts',
  'test/guarantees/leases/many-pollers.test.ts',
]
const OF_CLIENT_LONG = [
  ...OF_CLIENT,
  'test/guarantees/order/hot-key-processes.test.ts',
  'test/guarantees/dead-letters/serializers.test.ts',
  'test/guarantees/leases/kill-at-every-step.test.ts',
  'test/guarantees/leases/killed-process.test.ts',
  'test/guarantees/outages/cluster.test.ts',
  'test/guarantees/outages/hanging-broker.test.ts',
  'test/guarantees/outages/long-outage.test.ts',
  'test/guarantees/outages/routed-outages.test.ts',
  'test/guarantees/outages/wrong-clock.test.ts',
]

const CLIENT_NAMES: Record<PlatformaticMajor, string> = {
  '1': '@platformatic/kafka 1',
  '2': `@platformatic/kafka ${NEWER_CLIENT} on Node ${NEWER_NODE.split('.')[0]}`,
}

export function chooseCells(given: MatrixArguments): Cell[] {
  const { short, postgres, kafka, pgbouncer, platformatic } = given
  const filesOf = (pooled: boolean) => {
    if (!short) return EVERYTHING
    return pooled ? OF_POSTGRES : [...OF_POSTGRES, ...OF_VERSIONS]
  }
  const cell = (postgresVersion: string, kafkaVersion: string, pooled = false): Cell => ({
    name: `Postgres ${postgresVersion}${pooled ? ' behind PgBouncer' : ''}, Kafka ${kafkaVersion}`,
    postgres: postgresVersion,
    kafka: kafkaVersion,
    pgbouncer: pooled,
    platformatic: null,
    limitedRole: false,
    onlyClients: short && !pooled,
    files: filesOf(pooled),
  })
  const limited: Cell = {
    ...cell(defaultPostgres, defaultKafka),
    name: `Postgres ${defaultPostgres} with a role of few rights`,
    limitedRole: true,
    files: OF_ROLE,
  }
  const clientCell = (major: PlatformaticMajor): Cell => ({
    name: CLIENT_NAMES[major],
    postgres: postgres ?? defaultPostgres,
    kafka: kafka ?? defaultKafka,
    pgbouncer,
    platformatic: major,
    limitedRole: false,
    onlyClients: short,
    files: short ? OF_CLIENT : OF_CLIENT_LONG,
  })
  if (platformatic !== null) return [clientCell(platformatic)]
  if (postgres !== null || kafka !== null || pgbouncer) {
    return [cell(postgres ?? defaultPostgres, kafka ?? defaultKafka, pgbouncer)]
  }
  const behindPgbouncer = cell(defaultPostgres, defaultKafka, true)
  if (short) {
    return [
      cell(oldest(postgresReleases), oldest(kafkaReleases)),
      behindPgbouncer,
      limited,
      clientCell('2'),
    ]
  }
  const otherKafkas = [...kafkaReleases.keys()].filter((version) => version !== defaultKafka)
  return [
    ...[...postgresReleases.keys()].map((version) => cell(version, defaultKafka)),
    ...otherKafkas.map((version) => cell(defaultPostgres, version)),
    behindPgbouncer,
    limited,
    clientCell('1'),
    clientCell('2'),
  ]
}

/** Servers and clients are the cell's own, whatever the caller's environment names, and Kafka is never left out. */
export function environmentOf(cell: Cell, inherited: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { DATABASE_URL: _, KAFKA_BROKERS: __, KAFKA_CLIENT: ___, ...rest } = inherited
  return {
    ...rest,
    POSTGRES_VERSION: cell.postgres,
    KAFKA_VERSION: cell.kafka,
    KAFKA_REQUIRED: 'true',
    PGBOUNCER: String(cell.pgbouncer),
    ...(cell.limitedRole && { OUTBOX_ROLE: 'service' }),
    ...(cell.onlyClients && { OUTBOX_DRIVERS: 'clients' }),
    ...(cell.platformatic !== null && { KAFKA_CLIENT: 'platformatic' }),
    ...(cell.platformatic === '2' && {
      PLATFORMATIC_KAFKA_VERSION: NEWER_CLIENT,
      NODE_WANTED: NEWER_NODE,
    }),
  }
}

function oldest(releases: ReadonlyMap<string, unknown>): string {
  return [...releases.keys()][0]!
}
