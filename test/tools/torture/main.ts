// npm run torture: a service under load on a real Postgres and a real Kafka, with everything around it
// failing as the seed says, and an oracle that is asked in the end. The last line is one JSON object.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
import { idOf, judge, readArrivals, readJournal, type Verdict } from './oracle.ts'
import { judgePauses, Pausing, type PauseVerdict } from './pauses.ts'
import { Random } from './random.ts'
import { cancelledIn, judgeScheduled, type ScheduledVerdict } from './scheduled-oracle.ts'
import { readSendNotes } from './send-notes.ts'
import { watchForStalls } from './stalls.ts'
import { drain, type InTable, prepareTables, readScheduling, readTable } from './tables.ts'

const PROGRESS_MS = 5_000
/** Half of the shortest limit of a worker. With less of a stall, no event has a reason to go out twice. */
const STALL_MS = 500

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

  const folder = await mkdtemp(join(tmpdir(), 'aftercommit-torture-'))
  closeLater(() => rm(folder, { recursive: true }))
  const sendNotes = join(folder, 'sends')
  const databaseUrl = server.url.replace(`:${server.port}`, `:${postgresProxy.port}`)
  const connect = { databaseUrl, brokers: kafka.brokers, client, sendNotes }
  const crew = new Crew(workers, connect, random)
  closeLater(() => crew.stop())
  const faults = new Faults(
    { crew, postgres: server, kafka, postgresProxy, kafkaProxies },
    new Random(seed + 1),
  )
  const pausing = new Pausing(server.url, new Random(seed + 2))
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
  const stalls = await watchForStalls(server.url, kafka.directBrokers)
  await Promise.all([
    faults.run(seconds * 1_000, wanted),
    wanted.includes('pause') ? pausing.run(seconds * 1_000) : null,
  ])
  say('no more faults, no more units of work; waiting until nothing is pending')
  crew.stopWriting()
  await drain(server.url)
  const serversStalledMs = await stalls.stop()
  clearInterval(progress)
  await crew.stop()

  say('reading the topics from the start')
  const [journal, scheduling] = [await readJournal(server.url), await readScheduling(server.url)]
  const arrivals = await readArrivals(kafka.directBrokers)
  const notes = await readSendNotes(sendNotes)
  const sends = notes.flatMap(({ scheduled }) => scheduled)
  return {
    seed,
    seconds,
    brokers,
    client,
    ...judge(journal, arrivals, cancelledIn(scheduling)),
    ...(await readTable(server.url)),
    ...judgeScheduled(journal, arrivals.map(idOf), sends, scheduling),
    ...judgePauses(pausing.spans, faults.disturbances, notes),
    ...faults.counts,
    stalledMs: Math.round(Math.max(serversStalledMs, crew.report.stalledMs)),
  }
}

type Judged = Verdict & InTable & ScheduledVerdict & PauseVerdict & { readonly stalledMs: number }

function isGood(verdict: Judged, { faults }: TortureArguments): boolean {
  const { lost, phantom, outOfOrder, corrupted, duplicates, left, dead, recorded } = verdict
  const { committed, cancelled, cancelledSent, cancelledTwice, early, sharedLanes } = verdict
  const harm = lost + phantom + outOfOrder + corrupted + left + dead + verdict.sentLate
  const harmToScheduled = cancelledSent + cancelledTwice + early + sharedLanes
  const isClean = harm + harmToScheduled === 0 && recorded === committed - cancelled
  // After an outage, all that was due meanwhile goes out at once.
  const isOnce = duplicates === 0 || verdict.stalledMs > STALL_MS
  const isAsUsual = isOnce && cancelled > 0 && verdict.passed > 0
  return isClean && (faults.length > 0 || isAsUsual)
}

await runToVerdict({
  usage: USAGE,
  parse: parseTortureArguments,
  run: torture,
  isGood,
})
