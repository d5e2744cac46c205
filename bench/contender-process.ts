// The process of one contender: gets ready, waits for the word, does its job, tells the result, ends.
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { Acks } from './acks.ts'
import { runClaims } from './claims.ts'
import { type Contender, makeContender, type Stage } from './contender.ts'
import {
  type Assignment,
  type FromProcess,
  type Job,
  type JobResult,
  type ToProcess,
  type Usage,
} from './job.ts'
import { measuredKafka } from './kafkajs.ts'
import { eventMaker } from './load.ts'
import { LoadLines } from './load-lines.ts'
import { runOverhead } from './overhead.ts'
import { runPolls } from './polls.ts'

const POOL_SIZE = 20
const CHUNK = 1_000
const START_MS = 3_000
const PROGRESS_MS = 20

const assignment = JSON.parse(process.argv[2]!) as Assignment
const acks = new Acks()
const stage: Stage = {
  databaseUrl: assignment.databaseUrl,
  topic: assignment.topic,
  tuned: assignment.tuned,
  poolSize: POOL_SIZE,
  fresh: assignment.job.kind !== 'drain',
  kafka: measuredKafka(assignment.brokers, acks),
  brokers: assignment.brokers,
  acks,
}

const answer = await doJob(assignment.job).then(
  (result): FromProcess => ({ kind: 'done', result }),
  (error: unknown): FromProcess => ({ kind: 'failed', reason: (error as Error).message }),
)
// Some contenders leave a timer or a socket behind.
process.send!(answer, () => process.exit())

async function doJob(job: Job): Promise<JobResult> {
  if (job.kind === 'overhead') return await runOverhead(stage, job.units, ready)
  if (job.kind === 'polls') return await runPolls(stage, job.rounds, ready)
  if (job.kind === 'claims') return await runClaims(stage, job, ready)
  const contender = await makeContender(assignment.contender, stage)
  try {
    switch (job.kind) {
      case 'loads':
        await contender.start()
        return await serveLoads(contender)
      case 'leave-behind':
        await ready()
        await leaveBehind(contender, job.rows, job.payloadBytes)
        return measureUsage()()
      case 'drain':
        return await drain(contender, job)
      case 'idle':
        await contender.start()
        // What it asks once, when it starts, is not idle.
        await delay(START_MS)
        await ready()
        await delay(job.seconds * 1_000)
        return measureUsage()()
    }
  } finally {
    await contender.stop()
  }
}

async function serveLoads(contender: Contender): Promise<Usage> {
  const usage = measureUsage()
  const lines = new LoadLines(contender, acks, assignment.contender !== 'postgres-only')
  let next = hear()
  tell({ kind: 'ready' })
  for (;;) {
    const load = await next
    if (typeof load === 'string') return usage()
    await lines.warmUp(load)
    await ready()
    const used = measureUsage()
    const result = await lines.measure(load)
    next = hear()
    tell({ kind: 'measured', result: { ...result, ...used() } })
  }
}

async function leaveBehind(contender: Contender, rows: number, payloadBytes: number) {
  const makeEvents = eventMaker({ eventsPerUnit: 1, payloadBytes }, 0)
  for (let from = 0; from < rows; from += CHUNK) {
    const length = Math.min(CHUNK, rows - from)
    await contender.leaveBehind!(Array.from({ length }, (_, n) => makeEvents(from + n)[0]!))
  }
}

async function drain(contender: Contender, job: Extract<Job, { kind: 'drain' }>) {
  if (job.fromMemory) await leaveBehind(contender, job.fromMemory.rows, job.fromMemory.payloadBytes)
  const finish = told('finish')
  await ready()
  const usage = measureUsage()
  const timer = setInterval(() => tell({ kind: 'progress', acked: acks.count }), PROGRESS_MS)
  await contender.start()
  await finish
  clearInterval(timer)
  return usage()
}

async function ready(): Promise<void> {
  const go = told('go')
  tell({ kind: 'ready' })
  await go
}

async function told(word: ToProcess): Promise<void> {
  while ((await hear()) !== word);
}

async function hear(): Promise<ToProcess> {
  const [said] = (await once(process, 'message')) as [ToProcess]
  return said
}

function tell(message: FromProcess): void {
  process.send!(message)
}

function measureUsage(): () => Usage {
  const before = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(before)
    return { cpuSeconds: (user + system) / 1e6, peakRssMb: process.resourceUsage().maxRSS / 1_024 }
  }
}
