// The service under test: units of work at a steady rate, an outbox with a short retention, and answers to
// whoever watches it. Some units roll back, and some are saved by an instance that never sends anything, so that
// the fallback has work too.
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/postgres-js'
import { Kafka, logLevel } from 'kafkajs'
import postgres from 'postgres'
import { createOutbox } from '../../../src/index.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'
import { runUnit } from '../torture/business.ts'
import { Random } from '../torture/random.ts'
import { isPlanned, type Transaction } from '../torture/transaction.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'
import {
  type Counts,
  countHandles,
  countListeners,
  measureMemory,
  type Memory,
} from './resources.ts'
import { CLEANUP_SECONDS, planUnit, RETENTION_SECONDS } from './load.ts'

export interface ServiceArguments {
  readonly databaseUrl: string
  readonly brokers: string[]
  readonly rate: number
}

export type Command = 'write' | 'rest' | 'look' | 'measure' | 'end'

export interface Look {
  readonly handles: Counts
  readonly listeners: Counts
}

export interface Tally {
  readonly committed: number
  readonly rolledBack: number
  readonly failed: number
  /** Units that were due while too many others were under way. */
  readonly missed: number
  /** Warnings of the process, such as too many listeners. */
  readonly warnings: number
  /** Background steps that failed. */
  readonly errors: number
}

export interface Measurement extends Memory, Tally {
  /** What outbox.health() complained about. */
  readonly flags: readonly string[]
}

const CONNECTIONS = 10
const MOST_UNDER_WAY = 50
const TICK_MS = 20

const { databaseUrl, brokers, rate } = JSON.parse(process.argv[2]!) as ServiceArguments
const client = postgres(databaseUrl, { max: CONNECTIONS, onnotice: () => {} })
const db = drizzle(client)
const publisher = kafkaPublisher({ kafka: new Kafka({ brokers, logLevel: logLevel.NOTHING }) })
const outbox = createOutbox({
  db,
  publisher,
  pollInterval: '1s',
  retention: `${RETENTION_SECONDS}s`,
  cleanup: `${CLEANUP_SECONDS}s`,
})
// Never started: it leaves behind what an instance leaves that dies right after COMMIT.
const abandoned = createOutbox({ db, publisher })

const random = new Random(1)
const tally = { committed: 0, rolledBack: 0, failed: 0, missed: 0, warnings: 0, errors: 0 }
let underWay = 0
let ticking: NodeJS.Timeout | undefined
let ending = false

async function runOne(): Promise<void> {
  const { unit, isAbandoned } = planUnit(random)
  underWay += 1
  try {
    const saver = isAbandoned ? abandoned : outbox
    await saver.withOutbox((tx, emit) =>
      runUnit(unit, tx as Transaction, {
        emit: (_, event) => emit(event),
        cancel: (_, id) => saver.scheduled.cancel(id),
      }),
    )
    tally.committed += 1
  } catch (error) {
    if (isPlanned(error)) tally.rolledBack += 1
    else tally.failed += 1
  } finally {
    underWay -= 1
  }
}

function write(): void {
  const startedAt = performance.now()
  let begun = 0
  ticking = setInterval(() => {
    const due = Math.floor(((performance.now() - startedAt) / 1_000) * rate)
    for (; begun < due; begun += 1) {
      if (underWay < MOST_UNDER_WAY) void runOne()
      else tally.missed += 1
    }
  }, TICK_MS)
}

/** Stops writing and resolves when everything that was begun is over and recorded. */
async function rest(): Promise<void> {
  clearInterval(ticking)
  await waitUntil(() => underWay === 0, { message: 'the units of work under way' })
  const left = async () => (await outbox.stats()).pending.count
  await waitUntil(async () => (await left()) === 0, { message: 'nothing is pending' })
}

const look = (): Look => ({ handles: countHandles(), listeners: countListeners() })

async function measure(): Promise<Measurement> {
  const { flags } = await outbox.health()
  return { ...tally, flags: flags.map(({ flag }) => flag), ...measureMemory() }
}

/** From here on nothing is left that would keep the process alive. */
async function end(): Promise<void> {
  ending = true
  await outbox.stop()
  await client.end()
}

const commands: Record<Command, () => unknown> = { write, rest, look, measure, end }

process.on('warning', () => {
  tally.warnings += 1
})
outbox.events.on('error', () => {
  tally.errors += 1
})
// Opened now, so that the number of connections does not depend on how busy the warm-up was.
await Promise.all(Array.from({ length: CONNECTIONS }, () => db.execute(sql`select pg_sleep(0.2)`)))
await outbox.start()
process.on('message', async (command: Command) => {
  const answer = await commands[command]()
  process.send?.({ answer }, () => {
    if (command === 'end') process.disconnect()
  })
})
// Its watcher is gone without a word; one that was told to end has to get there by itself.
process.once('disconnect', () => {
  if (!ending) process.exit(1)
})
process.send?.({})
