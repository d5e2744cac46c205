// What a kafkajs error means for the events it hit: the destination's trouble, or the message's own fault.
import { PublishError } from '../errors.ts'
import type { PublishFailure } from './publisher.ts'

const PERMANENT = new Set([
  'MESSAGE_TOO_LARGE',
  'RECORD_LIST_TOO_LARGE',
  'INVALID_TOPIC_EXCEPTION',
  'TOPIC_AUTHORIZATION_FAILED',
  'CLUSTER_AUTHORIZATION_FAILED',
  'INVALID_TIMESTAMP',
  'INVALID_RECORD',
  'UNSUPPORTED_FOR_MESSAGE_FORMAT',
])

const ABOUT_ONE_TOPIC = new Set([
  'UNKNOWN_TOPIC_OR_PARTITION',
  'LEADER_NOT_AVAILABLE',
  'NOT_LEADER_FOR_PARTITION',
  'NOT_ENOUGH_REPLICAS',
  'NOT_ENOUGH_REPLICAS_AFTER_APPEND',
])

export function classifyKafkaError(error: Error): PublishFailure {
  const type = protocolType(error)
  const publishError = new PublishError('PUBLISH_FAILED', describe(error, type), { cause: error })
  if (PERMANENT.has(type)) return { ok: false, kind: 'permanent', error: publishError }
  const scope = ABOUT_ONE_TOPIC.has(type) ? 'topic' : 'broker'
  return { ok: false, kind: 'transient', error: publishError, scope }
}

/** kafkajs wraps its errors; the protocol's own word is somewhere down the chain of causes. */
function protocolType(error: unknown): string {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { type } = cause as { type?: unknown }
    if (typeof type === 'string') return type
  }
  return ''
}

// kafkajs prints a whole message, payload and all, in the text of some errors of its own.
function describe(error: Error, type: string): string {
  if (type) return `Kafka refused: ${type}`
  return error.message.startsWith('Invalid message') ? error.name : error.message
}
