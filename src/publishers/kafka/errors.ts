// Classifies the errors of a Kafka client: is the destination at fault, or the message itself?
import { PublishError } from '../../errors.ts'
import { findObstacle } from './access.ts'
import { typeOfCode } from './protocol-names.ts'
import type { PublishFailure } from '../../event/publish-result.ts'

/** Errors from a topic's metadata. kafkajs also reports them to sends for other topics. */
const TOPIC_REFUSED = new Set([
  'INVALID_TOPIC_EXCEPTION',
  'TOPIC_AUTHORIZATION_FAILED',
  'UNKNOWN_TOPIC_OR_PARTITION',
])

const PERMANENT = new Set([
  'MESSAGE_TOO_LARGE',
  'RECORD_LIST_TOO_LARGE',
  'INVALID_TOPIC_EXCEPTION',
  'TOPIC_AUTHORIZATION_FAILED',
  'CLUSTER_AUTHORIZATION_FAILED',
  'INVALID_RECORD',
  'UNSUPPORTED_FOR_MESSAGE_FORMAT',
])

const ABOUT_ONE_TOPIC = new Set([
  'UNKNOWN_TOPIC_OR_PARTITION',
  'LEADER_NOT_AVAILABLE',
  'NOT_LEADER_FOR_PARTITION',
  'NOT_LEADER_OR_FOLLOWER',
  'FENCED_LEADER_EPOCH',
  'UNKNOWN_TOPIC_ID',
  'INVALID_TIMESTAMP',
  'NOT_ENOUGH_REPLICAS',
  'NOT_ENOUGH_REPLICAS_AFTER_APPEND',
])

export function classifyKafkaError(topic: string, error: Error): PublishFailure {
  return classifyProtocolError(topic, error, protocolType(error))
}

/** `type` is the protocol's name for the error; '' if no broker gave one. */
export function classifyProtocolError(topic: string, error: Error, type: string): PublishFailure {
  const message = findObstacle(error)?.message ?? describe(topic, error, type)
  const publishError = new PublishError('PUBLISH_FAILED', message, { cause: error })
  if (PERMANENT.has(type)) return { ok: false, kind: 'permanent', error: publishError }
  const blames = ABOUT_ONE_TOPIC.has(type) ? 'topic' : 'broker'
  return { ok: false, kind: 'transient', error: publishError, blames }
}

/** kafkajs wraps its errors, so the protocol's error type is somewhere in the chain of causes. */
function protocolType(error: unknown): string {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { type, code } = cause as { type?: unknown; code?: unknown }
    const known = typeOfCode(code) ?? type
    if (typeof known === 'string') return known
  }
  return ''
}

const CLOCKS =
  'Kafka refused the timestamp of an event (INVALID_TIMESTAMP): the clocks of the database and of the broker differ by more than the topic allows, an hour by default; correct the clock that is wrong'

// Some kafkajs errors quote a whole message, including the payload, in their text.
function describe(topic: string, error: Error, type: string): string {
  // librdkafka names its own errors like this.
  if (type.startsWith('ERR__')) return `could not deliver to the topic '${topic}': ${type}`
  if (type === 'INVALID_TIMESTAMP') return CLOCKS
  if (type === 'UNKNOWN_TOPIC_OR_PARTITION') {
    return `the topic '${topic}' does not exist (${type}); create it, or move its events with aftercommit reroute; until then they wait`
  }
  if (type) return `Kafka refused an event for the topic '${topic}': ${type}`
  return error.message.startsWith('Invalid message') ? error.name : error.message
}

export function isAboutTopic({ error }: PublishFailure): boolean {
  return refusesTopic(protocolType(error.cause))
}

/** Whether every event of the topic would be refused like this one. */
export function refusesTopic(type: string): boolean {
  return TOPIC_REFUSED.has(type)
}

/** Refuses a topic name that no broker would accept, so that it is never sent. */
export function refuseTopic(topic: string): PublishFailure | undefined {
  if (/^[\w.-]{1,249}$/.test(topic) && topic !== '.' && topic !== '..') return undefined
  const error = new PublishError(
    'PUBLISH_FAILED',
    `'${topic}' cannot be a Kafka topic: its name must consist of up to 249 letters, digits, dots, dashes and underscores; change the topic of the event or the option topic`,
  )
  return { ok: false, kind: 'permanent', error }
}

export function missingAck(topic: string): PublishFailure {
  const error = new PublishError(
    'PUBLISH_FAILED',
    `Kafka's response has no acknowledgement for this event's partition of '${topic}'`,
  )
  return { ok: false, kind: 'transient', error, blames: 'topic' }
}
