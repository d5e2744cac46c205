// Promotions under load: the torture's workers write through one address while the server behind it dies and its standby
// takes over, again and again. In the end the torture's oracle compares the topics with the journal that survived.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import { PostgresPair } from '../../support/servers/postgres-pair.ts'
import { startKafka } from '../../support/servers/kafka-server.ts'
import { createTopic } from '../../support/servers/topic-reader.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'
import { TOPICS } from '../torture/business.ts'
import { Crew } from '../torture/crew.ts'
import {
  type Arrival,
  idOf,
  judge,
  readArrivals,
  readJournal,
  type Verdict,
} from '../torture/oracle.ts'
import { Random } from '../torture/random.ts'
import { cancelledIn, judgeScheduled, type ScheduledVerdict } from '../torture/scheduled-oracle.ts'
import { readSendNotes } from '../torture/send-notes.ts'
import { drain, type InTable, prepareTables, readScheduling, readTable } from '../torture/tables.ts'
import type { FailOverArguments } from './arguments.ts'

export interface FailOverResult extends Verdict, InTable, ScheduledVerdict {
  /** Units of work whose COMMIT was confirmed and that the last primary does not have; at least so many. */
  readonly unitsGone: number
  /** Numbers of the order of saving that two events have on the wire. */
  readonly repeatedSeqs: number
  /** The longest time from the death of a primary to the next confirmed COMMIT. */
  readonly longestAwayMs: number
}

export interface Frame {
  /** Closes this too, before all that was named earlier. */
  readonly closeLater: (close: () => Promise<unknown>) => void
  readonly say: (text: string) => void
}

/** How far away the standby is. What is on its way when the primary dies is lost. */
const LAG_MS = 50
const START_LIMIT_MS = 120_000

export async function failOverUnderLoad(
  { promotions, standby, units, seed, workers }: FailOverArguments,
  { closeLater, say }: Frame,
): Promise<FailOverResult> {
  say('starting Postgres, its standby and Kafka')
  const [pair, kafka] = await Promise.all([PostgresPair.start(standby), startKafka()])
  closeLater(() => Promise.all([pair.stop(), kafka.stop()]))
  await prepareTables(pair.primary.url)
  for (const topic of TOPICS) await createTopic(kafka.directBrokers, topic)
  const folder = await mkdtemp(join(tmpdir(), 'aftercommit-failover-'))
  closeLater(() => rm(folder, { recursive: true }))
  const sendNotes = join(folder, 'sends')
  const connect = {
    databaseUrl: pair.url,
    brokers: kafka.brokers,
    client: 'kafkajs',
    sendNotes,
  } as const
  say('starting the workers')
  const crew = new Crew(workers, connect, new Random(seed))
  closeLater(() => crew.stop())

  pair.link.delay(LAG_MS)
  const commits = async (more: number) => {
    const wanted = crew.report.committed + more
    await waitUntil(() => crew.report.committed >= wanted, {
      message: () => `${wanted} units committed, not ${crew.report.committed}`,
      timeoutMs: START_LIMIT_MS,
    })
  }
  let longestAwayMs = 0
  await commits(units)
  say('promoting')
  for (let n = 1; n <= promotions; n += 1) {
    const from = performance.now()
    await pair.failOver()
    const isBack = async () => {
      // The first may have been on its way to the supervisor before.
      await commits(workers)
      longestAwayMs = Math.max(longestAwayMs, Math.round(performance.now() - from))
    }
    await Promise.all([isBack(), pair.addStandby()])
    pair.link.delay(LAG_MS)
    await commits(units)
    const { committed, failed } = crew.report
    say(
      `promotion ${n}: ${committed} units committed, ${failed} failed; ${crew.crashes} workers gave up`,
    )
  }
  say('no more units of work; waiting until nothing is pending')
  crew.stopWriting()
  await drain(pair.primary.url)
  await crew.stop()

  say('reading the topics from the start')
  const { url } = pair.primary
  const [journal, scheduling] = [await readJournal(url), await readScheduling(url)]
  const arrivals = await readArrivals(kafka.directBrokers)
  const sends = (await readSendNotes(sendNotes)).flatMap(({ scheduled }) => scheduled)
  return {
    ...judge(journal, arrivals, cancelledIn(scheduling)),
    ...judgeScheduled(journal, arrivals.map(idOf), sends, scheduling),
    ...(await readTable(url)),
    unitsGone: Math.max(0, crew.report.committed - (await countUnits(url))),
    repeatedSeqs: countRepeatedSeqs(arrivals),
    longestAwayMs,
  }
}

/** Units of work in the journal: each committed one has written something there. */
async function countUnits(url: string): Promise<number> {
  const client = postgres(url, { max: 1 })
  const [row] = await client<
    [{ units: number }]
  >`select count(distinct xid)::int as units from journal`
  await client.end()
  return row.units
}

function countRepeatedSeqs(arrivals: readonly Arrival[]): number {
  const idsBySeq = new Map<string, Set<string>>()
  for (const { headers } of arrivals) {
    const seq = headers['event-seq'] ?? ''
    idsBySeq.set(seq, (idsBySeq.get(seq) ?? new Set()).add(headers['event-id'] ?? ''))
  }
  return [...idsBySeq.values()].filter(({ size }) => size > 1).length
}

/** What holds with either kind of standby, and what a synchronous one adds. */
export function isGood(
  result: FailOverResult,
  { standby }: Pick<FailOverArguments, 'standby'>,
): boolean {
  const { lost, corrupted, left, dead, recorded, committed, cancelled } = result
  const kept = lost + corrupted + left + dead === 0 && recorded === committed - cancelled
  const { phantom, outOfOrder, unitsGone, repeatedSeqs } = result
  const { cancelledSent, cancelledTwice, early } = result
  const invented = phantom + outOfOrder + unitsGone + repeatedSeqs
  const ofScheduled = cancelledSent + cancelledTwice + early
  return kept && (standby === 'asynchronous' || invented + ofScheduled === 0)
}
