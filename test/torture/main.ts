// npm run torture: a service under load on a real Postgres and a real Kafka, with everything around it
// failing as the seed says, and an oracle that is asked in the end. The last line is one JSON object.
import { setTimeout as delay } from 'node:timers/promises'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { createOutbox } from '../../src/index.ts'
import { handlersPublisher } from '../../src/publishers/handlers.ts'
import { findFreePort } from '../support/free-port.ts'
import { startKafka } from '../support/kafka-server.ts'
import { startPostgres } from '../support/postgres-server.ts'
import { startProxy } from '../support/tcp-proxy.ts'
import { createTopic } from '../support/topic-reader.ts'
import { waitUntil } from '../support/wait-until.ts'
import { parseTortureArguments, type TortureArguments, USAGE } from './arguments.ts'
import { TABLES, TOPICS } from './business.ts'
import { Crew } from './crew.ts'
import { Faults } from './faults.ts'
import { judge, readArrivals, readJournal, type Verdict } from './oracle.ts'
import { Random } from './random.ts'

const PROGRESS_MS = 5_000
const DRAIN_LIMIT_MS = 180_000

const closers: (() => Promise<unknown>)[] = []
const say = (text: string) => console.error(`${(performance.now() / 1_000).toFixed(0)}s  ${text}`)

async function torture({ seconds, seed, workers, faults: wanted }: TortureArguments) {
  const random = new Random(seed)
  say('starting Postgres and Kafka')
  const server = await startPostgres()
  closers.push(() => server.stop())
  const postgresProxy = await startProxy({ port: server.port })
  closers.push(() => postgresProxy.stop())
  const kafkaPort = await findFreePort()
  const kafkaProxy = await startProxy({ port: kafkaPort })
  closers.push(() => kafkaProxy.stop())
  const kafka = await startKafka({ port: kafkaPort, advertisedPort: kafkaProxy.port })
  closers.push(() => kafka.stop())
  await prepareTables(server.url)
  for (const topic of TOPICS) await createTopic(kafka.directBrokers, topic)

  const databaseUrl = server.url.replace(`:${server.port}`, `:${postgresProxy.port}`)
  const crew = new Crew(workers, { databaseUrl, brokers: kafka.brokers }, random)
  closers.push(() => crew.stop())
  const faults = new Faults(
    { crew, postgres: server, kafka, postgresProxy, kafkaProxy },
    new Random(seed + 1),
  )
  const progress = setInterval(() => {
    const { committed, failed } = crew.report
    const { kills, freezes, pgRestarts, kafkaRestarts, cuts } = faults.counts
    say(
      `${committed} units committed, ${failed} failed; ${kills} kills, ${freezes} freezes, ` +
        `${pgRestarts} + ${kafkaRestarts} restarts, ${cuts} cuts; ${crew.crashes} workers gave up`,
    )
  }, PROGRESS_MS)
  closers.push(async () => clearInterval(progress))

  await waitUntil(() => crew.report.committed > 0, { message: 'the first unit of work committed' })
  await (wanted === 'all' ? faults.run(seconds * 1_000) : delay(seconds * 1_000))
  say('no more faults, no more units of work; waiting until nothing is pending')
  crew.stopWriting()
  await drain(server.url)
  clearInterval(progress)
  await crew.stop()

  say('reading the topics from the start')
  const verdict = judge(await readJournal(server.url), await readArrivals(kafka.directBrokers))
  return { seed, seconds, ...verdict, ...faults.counts }
}

async function prepareTables(url: string): Promise<void> {
  const client = postgres(url, { max: 1, onnotice: () => {} })
  try {
    await client.unsafe(TABLES)
    const publisher = handlersPublisher({ handlers: {} })
    await createOutbox({ db: drizzle(client), publisher }).migrate()
  } finally {
    await client.end()
  }
}

/** Nothing is pending, and no transaction is left that could still commit something. */
async function drain(url: string): Promise<void> {
  const client = postgres(url, { max: 1 })
  const deadline = performance.now() + DRAIN_LIMIT_MS
  try {
    for (;;) {
      const [row] = await client<{ left: number }[]>`
        select (select count(*) from outbox where status = 'pending')::int
          + (select count(*) from pg_stat_activity where xact_start is not null
              and pid <> pg_backend_pid() and backend_type = 'client backend'
              and query not like '/* aftercommit%')::int as left`
      if (row!.left === 0) return
      if (performance.now() > deadline) return say(`gave up waiting for ${row!.left} of them`)
      await delay(250)
    }
  } finally {
    await client.end()
  }
}

function isGood({ lost, phantom, outOfOrder, corrupted, duplicates }: Verdict, faults: string) {
  const clean = lost + phantom + outOfOrder + corrupted === 0
  return clean && (faults === 'all' || duplicates === 0)
}

function readArguments(): TortureArguments {
  try {
    return parseTortureArguments(process.argv.slice(2))
  } catch (error) {
    console.error(`${(error as Error).message}\n${USAGE}`)
    process.exit(2)
  }
}

async function closeAll(): Promise<void> {
  for (const close of closers.splice(0).toReversed()) await close().catch(() => {})
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void closeAll().finally(() => process.exit(130)))
}
const given = readArguments()
try {
  const result = await torture(given)
  await closeAll()
  console.log(JSON.stringify(result))
  process.exitCode = isGood(result, given.faults) ? 0 : 1
} catch (error) {
  console.error(error)
  await closeAll()
  process.exitCode = 1
}
