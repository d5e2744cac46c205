// One instance of the service under torture: units of work side by side, an outbox, and a liveness check
// as docs/operations.md advises. Its supervisor kills, freezes and cuts it off as it likes.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres'
import { drizzle as drizzleJs } from 'drizzle-orm/postgres-js'
import pg from 'pg'
import postgres from 'postgres'
import {
  createOutbox,
  type DrizzleDatabase,
  type NewEvent,
  type OwnTransaction,
} from '../../../src/index.ts'
import { kafkaClient, type KafkaClientName } from '../../support/kafka-clients.ts'
import {
  type BurstUnit,
  isOpen,
  MOST_IN_BURST,
  planBurst,
  planCancelling,
  planUnit,
  runUnit,
  type Unit,
} from './business.ts'
import { answerLate, withLateAnswer } from './late-answers.ts'
import { Random } from './random.ts'
import { refuseSome } from './refusals.ts'
import { cancelAlone } from './scheduling.ts'
import { noteSends } from './send-notes.ts'
import { isPlanned, type Transaction } from './transaction.ts'

export interface WorkerArguments {
  readonly databaseUrl: string
  readonly brokers: string[]
  readonly client: KafkaClientName
  /** The file for notes of when sends began. */
  readonly sendNotes: string
  readonly driver: 'postgres-js' | 'node-postgres'
  readonly seed: number
  readonly writes: boolean
}

/** What a worker tells its supervisor now and then. */
export interface WorkerReport {
  /** Units of work that have written into the journal. */
  readonly committed: number
  readonly failed: number
  /** The longest time in which the process did nothing. */
  readonly stalledMs: number
}

const CONCURRENT_UNITS = 4
const CONCURRENT_BURSTS = 2
const CONCURRENT_CANCELS = 2
const MOST_MISSED_CHECKS = 4
/** Some are for the outbox itself. */
const CONNECTIONS = CONCURRENT_UNITS + CONCURRENT_BURSTS * MOST_IN_BURST + CONCURRENT_CANCELS + 3

const { databaseUrl, brokers, client, sendNotes, driver, seed, writes } = JSON.parse(
  process.argv[2]!,
) as WorkerArguments

function openDatabase(): DrizzleDatabase {
  if (driver === 'postgres-js') {
    return drizzleJs(
      postgres(databaseUrl, {
        max: CONNECTIONS,
        fetch_types: false,
        backoff: () => 0.1,
        connect_timeout: 2,
      }),
    )
  }
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: CONNECTIONS,
    connectionTimeoutMillis: 3_000,
  })
  pool.on('error', () => {})
  pool.on('connect', (session) => session.on('error', () => {}))
  return drizzlePg(pool)
}

const seeds = new Random(seed)
const split = () => new Random(seeds.between(0, 2 ** 32 - 1))
const refusals = split()
const plain = openDatabase()
const db = answerLate(plain, split())
const publisher = noteSends(
  refuseSome(
    kafkaClient(client).publisher(brokers, { connectMs: 1_000, requestMs: 2_000 }),
    ({ aggregateId }) => isOpen(aggregateId) && refusals.chance(0.03),
  ),
  sendNotes,
)
const outbox = createOutbox({
  db,
  publisher,
  threshold: '2s',
  publishTimeout: '1s',
  pollInterval: '500ms',
  backoffBase: '200ms',
  // Old rows go while everything else happens, too.
  retention: '10s',
  cleanup: '2s',
})
// Never started: it leaves behind what an instance leaves that dies right after COMMIT.
const abandoned = createOutbox({ db, publisher })

const report = { committed: 0, failed: 0 }
const stalls = monitorEventLoopDelay()
const work = { goesOn: writes }

async function write(unit: Unit, saver = outbox): Promise<void> {
  await attempt(async () => {
    await withLateAnswer(unit.answeredAfterMs, () => runByItsWay(unit, saver))
    // One that only cancels writes there if it finds something to cancel.
    if (unit.events > 0) report.committed += 1
  })
}

async function attempt(action: () => Promise<unknown>): Promise<void> {
  try {
    await action()
  } catch (error) {
    if (!isPlanned(error)) {
      report.failed += 1
      await delay(20)
    }
  }
}

async function runByItsWay(unit: Unit, saver: typeof outbox): Promise<unknown> {
  const { scheduled } = saver
  const cancel = (_: Transaction, id: string) => scheduled.cancel(id)
  if (unit.way === 'emitIn') {
    const own = (tx: Transaction) => tx as unknown as OwnTransaction
    return await db.transaction((tx) =>
      runUnit(unit, tx, {
        emit: (into, event) => saver.emitIn(own(into), event),
        cancel: (within, id) => scheduled.cancelIn(own(within), id),
      }),
    )
  }
  if (unit.way === 'outbox.db') {
    const emit = (_: Transaction, event: NewEvent) => saver.emit(event)
    return await saver.db.transaction((tx) => runUnit(unit, tx, { emit, cancel }))
  }
  return await saver.withOutbox(
    (tx, emit) => runUnit(unit, tx as Transaction, { emit: (_, event) => emit(event), cancel }),
    { retry: 3 },
  )
}

async function keepWriting(random: Random): Promise<void> {
  while (work.goesOn) await write(planUnit(random))
}

async function keepBursting(random: Random): Promise<void> {
  while (work.goesOn) await Promise.all(planBurst(random).map(writeInBurst))
}

async function keepCancelling(random: Random): Promise<void> {
  while (work.goesOn) {
    const unit = planCancelling(random)
    if (random.chance(0.7)) await write(unit)
    else await attempt(() => cancelAlone(unit.cancel, plain, (id) => outbox.scheduled.cancel(id)))
    // Often there is nothing that it could cancel.
    await delay(random.between(0, 200))
  }
}

async function writeInBurst({ unit, afterMs, isAbandoned }: BurstUnit): Promise<void> {
  await delay(afterMs)
  if (work.goesOn) await write(unit, isAbandoned ? abandoned : outbox)
}

// What a liveness probe would do: an instance that has lost its database for good is replaced.
async function watchHealth(): Promise<void> {
  let missed = 0
  for (;;) {
    await delay(1_000)
    const { flags } = await outbox.health()
    missed = flags.some(({ flag }) => flag === 'database') ? missed + 1 : 0
    if (missed > MOST_MISSED_CHECKS) process.exit(1)
  }
}

process.on('message', () => {
  work.goesOn = false
})
process.on('disconnect', () => process.exit(1))
outbox.stopOnSignals()
await outbox.start()
stalls.enable()
setInterval(() => {
  process.send?.({ ...report, stalledMs: stalls.max / 1e6 } satisfies WorkerReport)
}, 250)
void watchHealth()
for (let n = 0; n < CONCURRENT_UNITS; n += 1) void keepWriting(split())
for (let n = 0; n < CONCURRENT_BURSTS; n += 1) void keepBursting(split())
for (let n = 0; n < CONCURRENT_CANCELS; n += 1) void keepCancelling(split())
