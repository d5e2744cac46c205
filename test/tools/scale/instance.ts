// One process with one or more outboxes, which commits units of work at a steady pace: an INSERT of the business and, if
// asked for, one event. Prints a line when it has started, and runs until it is killed or told to stop.
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { Kafka, logLevel } from 'kafkajs'
import postgres from 'postgres'
import { postgresJs } from '../../../src/drivers/postgres-js.ts'
import { createOutbox } from '../../../src/index.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'
import type { Work } from './arguments.ts'

export interface InstanceArguments {
  readonly work: Work
  readonly databaseUrl: string
  readonly brokers: string[]
  readonly topic: string
  readonly outboxes: number
  /** Units of work a second. */
  readonly rate: number
  readonly payload: number
}

const TICK_MS = 20

const given = JSON.parse(process.argv[2]!) as InstanceArguments
const { work, databaseUrl, brokers, topic, outboxes, rate } = given
// Postgres compresses what is large and repeats itself.
const text = randomBytes(given.payload).toString('hex').slice(0, given.payload)
const payload = { text }
const kafka = new Kafka({ brokers, logLevel: logLevel.NOTHING })
const opened = Array.from({ length: outboxes }, () => {
  const sql = postgres(databaseUrl, { onnotice: () => {} })
  const db = postgresJs(sql)
  const publisher = kafkaPublisher({ kafka })
  const outbox =
    work === 'cdc' ? createOutbox({ db, relay: 'cdc' }) : createOutbox({ db, publisher, topic })
  return { sql, outbox }
})
// With relay: 'cdc' the saves alone are measured, and they need no start().
if (work === 'outbox' || work === 'idle') {
  await Promise.all(opened.map(({ outbox }) => outbox.start()))
}

const running = { goesOn: true }
let n = 0
async function runUnit(): Promise<void> {
  n += 1
  const { outbox } = opened[n % opened.length]!
  const aggregateId = String(n % 1_000)
  await outbox.withOutbox(async (tx, emit) => {
    await tx`insert into orders (customer, total) values (${aggregateId}, ${n})`
    if (work === 'business') return
    emit({ type: 'OrderPlaced', aggregateType: 'order', aggregateId, topic, payload })
  })
}

async function keepPace(): Promise<void> {
  const begun = performance.now()
  const under = new Set<Promise<void>>()
  for (let units = 0; running.goesOn; await delay(TICK_MS)) {
    const due = Math.floor(((performance.now() - begun) / 1_000) * rate)
    for (; units < due; units += 1) {
      const unit = runUnit()
      under.add(unit)
      void unit.finally(() => under.delete(unit))
    }
  }
  await Promise.all(under)
}

process.once('SIGTERM', () => void (running.goesOn = false))
console.log('started')
if (work === 'idle') while (running.goesOn) await delay(TICK_MS * 10)
else await keepPace()
for (const { sql, outbox } of opened) {
  await outbox.stop()
  await sql.end()
}
process.exit(0)
