// npm run torture: a service under load on a real Postgres and a real Kafka, with everything around it
// failing as the seed says, and an oracle that is asked in the end. The last line is one JSON object.
import { findFreePort } from '../../support/servers/free-port.ts'
import { startKafkaCluster } from '../../support/servers/kafka-cluster.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { closeLater, runToVerdict, say } from '../../support/run/run-to-verdict.ts'
import { startProxy } from '../../support/servers/tcp-proxy.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'
import { parseTortureArguments, type TortureArguments, USAGE } from './arguments.ts'
import { TOPICS } from './business.ts'
import { Crew } from './crew.ts'
import { Faults } from './faults.ts'
import { judge, readArrivals, readJournal, type Verdict } from './oracle.ts'
import { Random } from './random.ts'
import { drain, type InTable, prepareTables, readTable } from './tables.ts'

const PROGRESS_MS = 5_000

async function torture(given: TortureArguments) {
  const { seconds, seed, workers, faults: wanted, brokers, client, partitioned } = given
  const random = new Random(seed)
  say('starting Postgres and Kafka')
  const server = await startPostgres()
  closeLater(() => server.stop())
  const postgresProxy = await startProxy({ port: server.port })
  closeLater(() => postgresProxy.stop())
  const kafkaPorts = await Promise.all(Array.from({ length: brokers }, findFreePort))
  const kafkaProxies = await Promise.all(kafkaPorts.map((port) => startProxy({ port })))
  closeLater(() => Promise.all(kafkaProxies.map((proxy) => proxy.stop())))
  const kafka = await startKafkaCluster({
    ports: kafkaProxies.map((proxy, n) => ({ port: kafkaPorts[n]!, advertisedPort: proxy.port })),
  })
  closeLater(() => kafka.stop())
  await prepareTables(server.url, { partitioned })
  for (const topic of TOPICS) await kafka.createTopic(topic)

  const databaseUrl = server.url.replace(`:${server.port}`, `:${postgresProxy.port}`)
  const crew = new Crew(workers, { databaseUrl, brokers: kafka.brokers, client }, random)
  closeLater(() => crew.stop())
  const faults = new Faults(
    { crew, postgres: server, kafka, postgresProxy, kafkaProxies },
    new Random(seed + 1),
  )
  const progress = setInterval(() => {
    const { committed, failed } = crew.report
    const { kills, freezes, pgRestarts, kafkaRestarts, kafkaFreezes, cuts } = faults.counts
    say(
      `${committed} units committed, ${failed} failed; ${kills} kills, ${freezes} + ${kafkaFreezes} freezes, ` +
        `${pgRestarts} + ${kafkaRestarts} restarts, ${cuts} cuts; ${crew.crashes} workers gave up`,
    )
  }, PROGRESS_MS)
  closeLater(async () => clearInterval(progress))

  // Four processes that compile their sources at once take their time where other work goes on.
  const message = 'the first unit of work committed'
  await waitUntil(() => crew.report.committed > 0, { message, timeoutMs: 120_000 })
  await faults.run(seconds * 1_000, wanted)
  say('no more faults, no more units of work; waiting until nothing is pending')
  crew.stopWriting()
  await drain(server.url)
  clearInterval(progress)
  await crew.stop()

  say('reading the topics from the start')
  const verdict = judge(await readJournal(server.url), await readArrivals(kafka.directBrokers))
  return {
    seed,
    seconds,
    brokers,
    client,
    ...verdict,
    ...(await readTable(server.url)),
    ...faults.counts,
  }
}

function isGood(verdict: Verdict & InTable, { faults }: TortureArguments): boolean {
  const { lost, phantom, outOfOrder, corrupted, duplicates, left, dead, recorded, committed } =
    verdict
  const clean = lost + phantom + outOfOrder + corrupted + left + dead === 0
  return clean && recorded === committed && (faults.length > 0 || duplicates === 0)
}

await runToVerdict({
  usage: USAGE,
  parse: parseTortureArguments,
  run: torture,
  isGood,
})
