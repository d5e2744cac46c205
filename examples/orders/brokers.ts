// Where the events go, and how that place is taken away: a Kafka of the demo's own is killed, a broker
// that is not ours to kill and in-process handlers are only cut off in front of the publisher.
import { Kafka, logLevel } from 'kafkajs'
import { type Publisher, PublishError } from 'aftercommit'
import { handlersPublisher } from 'aftercommit/handlers'
import { kafkaPublisher } from 'aftercommit/kafka'
import { explainMissingJava, fetchKafkaJars } from '../../test/support/servers/kafka-jars.ts'
import type { KafkaServer } from '../../test/support/servers/kafka-server.ts'
import { type ExternalKafka, resolveKafka } from '../../test/support/servers/kafka-source.ts'
import { createTopic, readTopic } from '../../test/support/servers/topic-reader.ts'
import { uniqueName } from '../../test/support/doubles/unique-name.ts'
import type { Delivery } from './oracle.ts'
import type { Screen } from './screen.ts'

export interface DemoBroker {
  /** What it is and how its outage is made, for the reader of the screen. */
  readonly title: string
  readonly outage: string
  /** Who says in the end what arrived. */
  readonly witness: string
  readonly publisher: Publisher
  /** About how long `bringBack()` takes. */
  readonly startsWithinMs: number
  takeAway(): Promise<void>
  /** Resolves when it answers again. */
  bringBack(): Promise<void>
  /** Everything that arrived, read by a consumer that has nothing to do with the outbox. */
  readDelivered(): Promise<readonly Delivery[]>
  stop(): Promise<void>
}

export const topic = uniqueName('demo-orders')

export async function openBroker(screen: Screen, handlersOnly: boolean): Promise<DemoBroker> {
  if (handlersOnly) return openHandlers('as asked for')
  // KAFKA_BROKERS names a broker that runs already; without Java there may be one in Docker.
  if (!process.env['KAFKA_BROKERS'] && (await explainMissingJava()) === null) {
    const label = 'looking for the Kafka jars (the first time mvn downloads 44 MB)'
    // If this fails, resolveKafka() finds out too, and says why.
    await screen.step(label, fetchKafkaJars).catch(() => {})
  }
  try {
    const { server, missing } = await screen.step('starting Kafka', resolveKafka)
    return server ? await openKafka(server) : openHandlers(missing)
  } catch (error) {
    return openHandlers(error instanceof Error ? error.message : String(error))
  }
}

async function openKafka(server: KafkaServer | ExternalKafka): Promise<DemoBroker> {
  const { brokers } = server
  await createTopic(brokers, topic)
  // A client that gives up soon leaves the waiting to the outbox, which knows when to try again.
  const kafka = new Kafka({
    clientId: 'aftercommit-demo',
    brokers,
    logLevel: logLevel.NOTHING,
    connectionTimeout: 1_000,
    requestTimeout: 2_000,
    retry: { retries: 1, initialRetryTime: 100 },
  })
  const publisher = kafkaPublisher({ kafka, requestTimeout: '2s' })
  const witness = 'a consumer of its own'
  const readDelivered = () => readFromBeginning(brokers)
  if (server.managed) {
    return {
      title: 'Kafka, a broker of its own',
      outage: 'SIGKILL, then a start on the same data',
      witness,
      publisher,
      startsWithinMs: 4_000,
      takeAway: () => server.kill(),
      bringBack: () => server.start(),
      readDelivered,
      stop: () => server.stop(),
    }
  }
  const stop = async () => {
    await deleteTopic(kafka)
    await server.stop()
  }
  const title = `Kafka at ${brokers.join()}`
  return { title, witness, ...cutOff(publisher), readDelivered, stop }
}

export function openHandlers(reason: string): DemoBroker {
  const arrived: Delivery[] = []
  const receive = ({ id, aggregateId }: { id: string; aggregateId: string }) => {
    arrived.push({ eventId: id, orderId: aggregateId })
  }
  const publisher = handlersPublisher({ handlers: { OrderPlaced: receive, OrderPaid: receive } })
  return {
    title: `in-process handlers, not Kafka: ${reason}`,
    witness: 'the handlers',
    ...cutOff(publisher),
    readDelivered: async () => arrived,
    stop: async () => {},
  }
}

/** An outage as the outbox would see it, for what the demo cannot or may not kill. */
function cutOff(publisher: Publisher) {
  let away = false
  const error = new PublishError('PUBLISH_FAILED', 'the broker is away (simulated)')
  return {
    outage: 'simulated, the publisher answers that nobody is there',
    publisher: {
      ...publisher,
      publish: async (events) => {
        if (!away) return publisher.publish(events)
        return events.map(() => ({ ok: false, kind: 'transient', error }) as const)
      },
    } satisfies Publisher,
    startsWithinMs: 0,
    takeAway: async () => {
      away = true
    },
    bringBack: async () => {
      away = false
    },
  }
}

async function readFromBeginning(brokers: string[]): Promise<readonly Delivery[]> {
  const reader = await readTopic(brokers, topic)
  try {
    const messages = await reader.readToEnd()
    return messages.map(({ key, headers }) => ({
      eventId: headers['event-id'] ?? 'a message without event-id',
      orderId: key ?? '',
    }))
  } finally {
    await reader.stop()
  }
}

async function deleteTopic(kafka: Kafka): Promise<void> {
  const admin = kafka.admin()
  try {
    await admin.connect()
    await admin.deleteTopics({ topics: [topic] })
  } finally {
    await admin.disconnect()
  }
}
