// Names of the protocol's errors, for clients that only give a number.

/** Error codes of librdkafka (negative) and of the protocol, with their names in kafkajs. */
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

/** Returns the name for a code of either client. Where kafkajs errors have a number, it is the same. */
export function typeOfCode(code: unknown): string | undefined {
  return TYPES.get(code as number)
}
