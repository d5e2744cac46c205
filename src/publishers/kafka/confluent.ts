// The KafkaJS-compatible producer of @confluentinc/kafka-javascript, which is librdkafka underneath. A batch is no unit
// for it: messages go on behind one that failed, and one error is told for all. So each event goes by itself, and within
// an aggregate it waits for the one before; librdkafka packs what is on its way at the same time into requests. It takes
// its acks from its own settings, and none with a batch. It rewrites the messages that it is given: they go once.
import type { Producer } from 'kafkajs'

/** Settings are out of sight; librdkafka gives up a message after this, if nothing else is said. */
export const MESSAGE_TIMEOUT = '5m'

/** A method that kafkajs does not have. */
export function isConfluent(producer: Pick<Producer, 'sendBatch'>): boolean {
  return typeof (producer as { dependentAdmin?: unknown }).dependentAdmin === 'function'
}

/** librdkafka's own codes, which are negative, and those of the protocol, by the names that kafkajs has for them. */
const TYPES = new Map([
  [-190, 'UNKNOWN_TOPIC_OR_PARTITION'],
  [-188, 'UNKNOWN_TOPIC_OR_PARTITION'],
  [3, 'UNKNOWN_TOPIC_OR_PARTITION'],
  [5, 'LEADER_NOT_AVAILABLE'],
  [6, 'NOT_LEADER_FOR_PARTITION'],
  [10, 'MESSAGE_TOO_LARGE'],
  [17, 'INVALID_TOPIC_EXCEPTION'],
  [18, 'RECORD_LIST_TOO_LARGE'],
  [19, 'NOT_ENOUGH_REPLICAS'],
  [20, 'NOT_ENOUGH_REPLICAS_AFTER_APPEND'],
  [29, 'TOPIC_AUTHORIZATION_FAILED'],
  [31, 'CLUSTER_AUTHORIZATION_FAILED'],
  [32, 'INVALID_TIMESTAMP'],
  [43, 'UNSUPPORTED_FOR_MESSAGE_FORMAT'],
  [87, 'INVALID_RECORD'],
])

/** Of an error of either client: kafkajs has the same numbers where it has numbers at all. */
export function typeOfCode(code: unknown): string | undefined {
  return TYPES.get(code as number)
}
