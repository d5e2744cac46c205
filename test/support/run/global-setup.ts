// Starts one Postgres and one Kafka for the whole run, looks for a RabbitMQ, and tells the test files where they
// are. With PGBOUNCER=true they reach Postgres by way of a PgBouncer. The servers' folders are guarded (see
// owned-folder.ts), so a run that dies at any point leaves nothing behind.
import type { TestProject } from 'vitest/node'
import { explainMissingOwnKafka, resolveKafka } from '../servers/kafka-source.ts'
import { explainMissingChromium } from '../servers/chromium.ts'
import { explainMissingDisk } from '../servers/small-disk.ts'
import { ownFolder } from '../servers/owned-folder.ts'
import { explainMissingPgBouncer, startPgBouncer } from '../servers/pgbouncer.ts'
import { buildPage } from './built-page.ts'
import { startPostgres } from '../servers/postgres-server.ts'
import { resolveRabbit } from '../servers/rabbitmq-source.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    databaseUrl: string
    /** Past any PgBouncer, to create and drop databases. */
    directDatabaseUrl: string
    /** Why a test cannot start a PgBouncer. */
    pgbouncerMissing: string | null
    /** The shared broker, or null when there is none. */
    kafkaBrokers: string[] | null
    /** Why there is no shared broker. */
    kafkaMissing: string | null
    /** Why a test cannot start a broker of its own to kill or pause it. */
    ownKafkaMissing: string | null
    /** A server that tests may use but not stop, or null when there is none. */
    rabbitUrl: string | null
    /** Why there is none. */
    rabbitMissing: string | null
    /** Why there is no browser. */
    chromiumMissing: string | null
    /** Why a test cannot mount a disk to fill. */
    diskMissing: string | null
  }
}

type Stoppable = { stop(): Promise<void> }
type SharedPostgres = Stoppable & { url: string; directUrl: string }

/** Fewer than the ten connections of one postgres.js client, of which a test may open several. */
const POOL_SIZE = 5

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  // vitest forgets its own temporary folder on Ctrl-C.
  await ownFolder(project.tmpDir)
  const [postgres, kafka, ownKafkaMissing, pgbouncerMissing, rabbit, chromiumMissing, diskMissing] =
    await startAll()
  project.provide('databaseUrl', postgres.url)
  project.provide('directDatabaseUrl', postgres.directUrl)
  project.provide('pgbouncerMissing', pgbouncerMissing)
  project.provide('kafkaBrokers', kafka.server?.brokers ?? null)
  project.provide('kafkaMissing', kafka.missing)
  project.provide('ownKafkaMissing', ownKafkaMissing)
  project.provide('rabbitUrl', rabbit.url)
  project.provide('rabbitMissing', rabbit.missing)
  project.provide('chromiumMissing', chromiumMissing)
  project.provide('diskMissing', diskMissing)

  return async () => {
    await stopAll([postgres, kafka.server])
    const skipped: readonly (readonly [suites: string, missing: string | null])[] = [
      ['that need Kafka', kafka.missing],
      ['that stop and kill a Kafka of their own', ownKafkaMissing],
      ['behind PgBouncer', pgbouncerMissing],
      ['in a browser', chromiumMissing],
      ['that need RabbitMQ', rabbit.missing],
      ['on a full disk', diskMissing],
    ]
    const lines = skipped.flatMap(([suites, missing]) =>
      missing ? [`  ${suites}: ${missing}`] : [],
    )
    if (lines.length > 0) console.log(['Skipped suites, and why:', ...lines].join('\n'))
  }
}

async function startAll() {
  const starting = [
    findPostgres(),
    resolveKafka(),
    explainMissingOwnKafka(),
    explainMissingPgBouncer(),
    resolveRabbit(),
    explainMissingChromium(),
    explainMissingDisk(),
    buildPage(),
  ] as const
  try {
    return await Promise.all(starting)
  } catch (error) {
    const [postgres, kafka] = await Promise.allSettled(starting)
    await stopAll([
      postgres.status === 'fulfilled' ? postgres.value : null,
      kafka.status === 'fulfilled' ? kafka.value.server : null,
    ])
    throw error
  }
}

async function findPostgres(): Promise<SharedPostgres> {
  const named = process.env['DATABASE_URL']
  const server = named ? { url: named, stop: async () => {} } : await startPostgres()
  if (process.env['PGBOUNCER'] !== 'true') return { ...server, directUrl: server.url }
  try {
    const pgbouncer = await startPgBouncer(server.url, POOL_SIZE)
    return {
      url: pgbouncer.pooled(server.url),
      directUrl: server.url,
      stop: () => pgbouncer.stop().then(() => server.stop()),
    }
  } catch (error) {
    await server.stop()
    throw error
  }
}

async function stopAll(servers: (Stoppable | null)[]): Promise<void> {
  await Promise.all(servers.map(async (server) => server?.stop()))
}
