// npm run soak: one service at a steady rate on a real Postgres and a real Kafka, watched for what grows: its
// memory, its handles and listeners, the table and its indexes, also while somebody else holds an old
// transaction open. The last line is one JSON object.
import { setTimeout as delay } from 'node:timers/promises'
import { startKafka } from '../../support/servers/kafka-server.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { closeLater, runToVerdict, say } from '../../support/run/run-to-verdict.ts'
import { createTopic, readTopic } from '../../support/servers/topic-reader.ts'
import { TOPICS } from '../torture/business.ts'
import { judge, readJournal } from '../torture/oracle.ts'
import { drain, prepareTables } from '../torture/tables.ts'
import { parseSoakArguments, type SoakArguments, USAGE } from './arguments.ts'
import { NAPTIME_SECONDS } from './bounds.ts'
import { type Phase, planPhases, sampleEveryMs } from './phases.ts'
import { explain, progressOf, type Summary, summarize } from './report.ts'
import type { Sample } from './samples.ts'
import { ServiceUnderTest } from './service-under-test.ts'
import { TableWatch } from './table-watch.ts'
import { judgeSoak } from './verdict.ts'

// Of autovacuum only how often it comes by; what it does then, and when it is due, is left as Postgres has it.
const SETTINGS = {
  autovacuum_naptime: `${NAPTIME_SECONDS}s`,
  shared_preload_libraries: 'pg_stat_statements',
}

async function soak(args: SoakArguments): Promise<Summary> {
  say('starting Postgres and Kafka')
  const server = await startPostgres({ settings: SETTINGS })
  closeLater(() => server.stop())
  const kafka = await startKafka()
  closeLater(() => kafka.stop())
  await prepareTables(server.url)
  const readers = await Promise.all(TOPICS.map((topic) => readAlong(kafka.directBrokers, topic)))
  const watch = await TableWatch.open(server.url)
  closeLater(() => watch.close())
  const { brokers } = kafka
  const service = await ServiceUnderTest.start({
    databaseUrl: server.url,
    brokers,
    rate: args.rate,
  })
  closeLater(() => service.kill())

  const samples: Sample[] = []
  const everyMs = sampleEveryMs(args.seconds)
  const startedAt = performance.now()
  async function watchPhase({ name, seconds }: Phase): Promise<void> {
    const end = performance.now() + seconds * 1_000
    while (performance.now() < end) {
      await delay(Math.min(everyMs, Math.max(0, end - performance.now())))
      const [measured, table, statements] = await Promise.all([
        service.measure(),
        watch.size(),
        watch.statements(),
      ])
      const atSeconds = (performance.now() - startedAt) / 1_000
      const sample: Sample = { atSeconds, phase: name, service: measured, table, statements }
      samples.push(sample)
      say(progressOf(sample))
    }
  }

  const phases = planPhases(args.seconds)
  const [warmUp, steady, held, recovery] = phases as [Phase, Phase, Phase, Phase]
  await service.write()
  await watchPhase(warmUp)
  const first = await service.restAndLook()
  await service.write()
  await watchPhase(steady)
  const rowBytes = await watch.rowBytes()
  say('somebody else opens a transaction and holds it')
  const letGo = await watch.holdOldTransaction()
  await watchPhase(held)
  say('the old transaction ends')
  await letGo()
  await watchPhase(recovery)

  say('no more units of work; waiting until nothing is pending')
  const last = await service.restAndLook()
  const tally = await service.measure()
  await drain(server.url)
  const endedByItself = await service.end()
  say('reading the topics to their end')
  const arrivals = await Promise.all(readers.map((reader) => reader()))
  const delivery = judge(await readJournal(server.url), arrivals.flat())
  const evidence = { phases, samples, first, last, tally, endedByItself, delivery, rowBytes }
  const summary = summarize(args, evidence, judgeSoak(evidence))
  for (const line of explain(summary)) console.error(line)
  return summary
}

/** Reads a topic while it is written, so that little is left for the end. */
async function readAlong(brokers: string[], topic: string) {
  await createTopic(brokers, topic)
  const reader = await readTopic(brokers, topic)
  closeLater(() => reader.stop())
  return async () => (await reader.readToEnd()).map((message) => ({ ...message, topic }))
}

await runToVerdict({
  usage: USAGE,
  parse: parseSoakArguments,
  run: soak,
  isGood: ({ failures }) => failures.length === 0,
})
