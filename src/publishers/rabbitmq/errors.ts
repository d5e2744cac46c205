// What an answer of RabbitMQ means for the events it hit: the destination's trouble, or the message's own fault.
import { PublishError } from '../errors.ts'
import type { RabbitMessage } from './rabbitmq-message.ts'
import type { PublishFailure } from './publisher.ts'

const NOT_FOUND = 404
const ACCESS_REFUSED = 403
const PRECONDITION_FAILED = 406

export function outOfReach(error: Error): PublishFailure {
  const message = `RabbitMQ is out of reach: ${error.message}`
  return transient('broker', new PublishError('PUBLISH_FAILED', message, { cause: error }))
}

/** The connection ended with the event on its way. Whether it arrived, nobody knows: it goes again. */
export function lostConnection(error: Error): PublishFailure {
  const message = `the connection to RabbitMQ ended before it confirmed the event: ${error.message}`
  return transient('broker', new PublishError('PUBLISH_FAILED', message, { cause: error }))
}

export function blocked(reason: string): PublishFailure {
  return transient('broker', publishError(`RabbitMQ takes no messages for now: ${reason}`))
}

export function notConfirmed(message: RabbitMessage, scope: 'broker' | 'topic'): PublishFailure {
  return transient(scope, publishError(`RabbitMQ did not confirm an event for ${place(message)}`))
}

/** For instance by a queue that is full and set to reject what it has no room for. */
export function nacked(message: RabbitMessage): PublishFailure {
  return transient('topic', publishError(`RabbitMQ refused an event for ${place(message)} (nack)`))
}

export function unroutable(message: RabbitMessage): PublishFailure {
  return permanent(
    `RabbitMQ found no queue: ${place(message)} leads to none (NO_ROUTE); declare and bind one, or correct the route`,
  )
}

export function permanent(message: string, cause?: Error): PublishFailure {
  const error = new PublishError('PUBLISH_FAILED', message, cause && { cause })
  return { ok: false, kind: 'permanent', error }
}

/**
 * RabbitMQ answers a message that it does not take by closing the channel. The others on it are in doubt: those
 * before it may have arrived, those after it have not.
 */
export function classifyChannelError(
  message: RabbitMessage,
  error: Error,
  alone: boolean,
): PublishFailure {
  const { code } = error as { code?: unknown }
  if (code === NOT_FOUND) {
    const text = `RabbitMQ has no exchange '${message.exchange}'; declare it, or correct the route`
    return transient('topic', new PublishError('PUBLISH_FAILED', text, { cause: error }))
  }
  if (isToBlame(message, code, error.message, alone)) {
    return permanent(`RabbitMQ refused an event for ${place(message)}: ${error.message}`, error)
  }
  const text = `the channel to ${place(message)} was closed before the event was confirmed: ${error.message}`
  return transient('topic', new PublishError('PUBLISH_FAILED', text, { cause: error }))
}

// RabbitMQ does not say which message it closed a channel for, but its words tell.
function isToBlame(
  { routingKey, content }: RabbitMessage,
  code: unknown,
  text: string,
  alone: boolean,
): boolean {
  if (code !== ACCESS_REFUSED && code !== PRECONDITION_FAILED) return false
  if (alone) return true
  if (code === ACCESS_REFUSED) {
    // Of the exchange as a whole, unless it is about one routing key.
    return !text.includes('access to topic') || text.includes(`access to topic '${routingKey}' in`)
  }
  const [, limit] = /larger than (?:configured )?max size (\d+)/.exec(text) ?? []
  return limit !== undefined && content.length > Number(limit)
}

function transient(scope: 'broker' | 'topic', error: PublishError): PublishFailure {
  return { ok: false, kind: 'transient', error, scope }
}

function publishError(message: string): PublishError {
  return new PublishError('PUBLISH_FAILED', message)
}

function place({ exchange, routingKey }: RabbitMessage): string {
  return exchange === ''
    ? `the queue '${routingKey}'`
    : `the exchange '${exchange}' with the routing key '${routingKey}'`
}
