// One instance of the service that is upgraded, on the build that it is told: units of work at a steady pace until SIGTERM,
// and then a stop like that of any deployment. SIGUSR2 ends the units of work alone. Prints a line when it has started, and
// one when no unit of work is left.
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
} as const
// Nothing may go out twice, so a lease has to outlast a machine that stands still.
const outbox = createOutbox({ ...options, threshold: '20s', publishTimeout: '10s', migrate: true })
// Never started: what it saves is left to the fallback, of whichever build. It sends nothing, so a short lease costs nothing.
const abandoned = createOutbox({ ...options, threshold: '5s', publishTimeout: '3s' })
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

async function endWriting(): Promise<void> {
  writing.goesOn = false
  await writers
}

process.once('SIGUSR2', async () => {
  await endWriting()
  console.log('quiet')
})
process.once('SIGTERM', async () => {
  await endWriting()
  await outbox.stop()
  await client.end()
  process.exit(0)
})
