// The KafkaJS-compatible producer of @confluentinc/kafka-javascript, on top of librdkafka. It does not send a
// batch as a unit: messages after a failed one still go out, and there is one error for all. So each event is sent by
// itself, and within a lane it waits for the one before. librdkafka packs concurrent messages into requests. It takes
// acks from its own settings and refuses them per batch. It modifies the messages that it receives, so each goes to it
// only once.
import type { Producer } from 'kafkajs'

/** When librdkafka gives up on a message by default. We cannot read the producer's settings. */
export const MESSAGE_TIMEOUT = '5m'

/** Recognises the producer by a method that kafkajs does not have. */
export function isConfluent(producer: Pick<Producer, 'sendBatch'>): boolean {
  return typeof (producer as { dependentAdmin?: unknown }).dependentAdmin === 'function'
}
