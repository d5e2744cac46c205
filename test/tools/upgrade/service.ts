// One instance of the service that is upgraded, on the build that it is told: units of work at a steady pace until SIGTERM,
// and then a stop like that of any deployment. Prints a line when it has started.
import { setTimeout as delay } from 'node:timers/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { drizzle } from 'drizzle-orm/postgres-js'
import { Kafka, logLevel } from 'kafkajs'
import postgres from 'postgres'
import type { createOutbox as CreateOutbox } from '../../../src/index.ts'
import type { kafkaPublisher as KafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'
import { planUnit } from '../soak/load.ts'
import { runUnit } from '../torture/business.ts'
import { Random } from '../torture/random.ts'
import { isPlanned, type Transaction } from '../torture/transaction.ts'

export interface ServiceArguments {
  readonly build: string
  readonly databaseUrl: string
  readonly brokers: string[]
  readonly seed: number
}

const WRITERS = 4
const UNIT_MS = 30

const given = JSON.parse(process.argv[2]!) as ServiceArguments
const load = async <T>(file: string) =>
  (await import(pathToFileURL(join(given.build, 'dist', file)).href)) as T
const { createOutbox } = await load<{ createOutbox: typeof CreateOutbox }>('index.js')
const { kafkaPublisher } = await load<{ kafkaPublisher: typeof KafkaPublisher }>(
  'publishers/kafka/kafka-publisher.js',
)

const client = postgres(given.databaseUrl, { max: 8, onnotice: () => {} })
const db = drizzle(client)
const kafka = new Kafka({ brokers: given.brokers, logLevel: logLevel.NOTHING })
const publisher = kafkaPublisher({ kafka })
const options = {
  db,
  publisher,
  pollInterval: '1s',
  threshold: '5s',
  publishTimeout: '3s',
} as const
const outbox = createOutbox({ ...options, migrate: true })
// Never started: what it saves is left to the fallback, of whichever build.
const abandoned = createOutbox(options)
await outbox.start()
console.log('started')

const random = new Random(given.seed)
const writing = { goesOn: true }
async function write(): Promise<void> {
  while (writing.goesOn) {
    const { unit, isAbandoned } = planUnit(random)
    const saver = isAbandoned ? abandoned : outbox
    try {
      await saver.withOutbox((tx, emit) =>
        runUnit(unit, tx as Transaction, {
          emit: (_, event) => emit(event),
          cancel: (_, id) => saver.scheduled.cancel(id),
        }),
      )
    } catch (error) {
      if (!isPlanned(error)) console.error(error)
    }
    await delay(UNIT_MS)
  }
}
const writers = Promise.all(Array.from({ length: WRITERS }, write))

process.once('SIGTERM', async () => {
  writing.goesOn = false
  await writers
  await outbox.stop()
  await client.end()
  process.exit(0)
})
