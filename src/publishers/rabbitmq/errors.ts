// Classifies RabbitMQ's responses: is the destination at fault, or the message itself?
import { PublishError } from '../../errors.ts'
import type { RabbitMessage } from './message.ts'
import type { PublishFailure } from '../../event/publish-result.ts'

const NOT_FOUND = 404
const ACCESS_REFUSED = 403
const PRECONDITION_FAILED = 406

export function outOfReach(error: Error): PublishFailure {
  const message = `RabbitMQ is out of reach: ${error.message}`
  return transient('broker', new PublishError('PUBLISH_FAILED', message, { cause: error }))
}

/** The connection ended with the event in flight. Whether the event arrived is unknown, so it is sent again. */
export function lostConnection(error: Error): PublishFailure {
  const message = `the connection to RabbitMQ ended before it confirmed the event: ${error.message}`
  return transient('broker', new PublishError('PUBLISH_FAILED', message, { cause: error }))
}

export function blocked(reason: string): PublishFailure {
  return transient('broker', publishError(`RabbitMQ accepts no messages for now: ${reason}`))
}

export function notConfirmed(message: RabbitMessage, blames: 'broker' | 'topic'): PublishFailure {
  return transient(blames, publishError(`RabbitMQ did not confirm an event for ${place(message)}`))
}

/** For instance, a queue is full and configured to reject new messages. */
export function nacked(message: RabbitMessage): PublishFailure {
  return transient('topic', publishError(`RabbitMQ refused an event for ${place(message)} (nack)`))
}

export function unroutable(message: RabbitMessage): PublishFailure {
  return permanent(
    message.exchange === ''
      ? `RabbitMQ found no queue '${message.routingKey}' (NO_ROUTE); declare it, or correct the route`
      : `RabbitMQ found no queue for an event that was sent to ${place(message)} (NO_ROUTE); bind one to it, or correct the route`,
  )
}

export function permanent(message: string, cause?: Error): PublishFailure {
  const error = new PublishError('PUBLISH_FAILED', message, cause && { cause })
  return { ok: false, kind: 'permanent', error }
}

/**
 * RabbitMQ refuses a message by closing the channel. The other messages on it are in doubt: those before it may have
 * arrived, those after it have not.
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

// RabbitMQ does not name the message over which it closed a channel, but its error text gives enough away.
function isToBlame(
  { routingKey, content }: RabbitMessage,
  code: unknown,
  text: string,
  alone: boolean,
): boolean {
  if (code !== ACCESS_REFUSED && code !== PRECONDITION_FAILED) return false
  if (alone) return true
  if (code === ACCESS_REFUSED) {
    // The refusal is about the whole exchange, unless its text names a routing key.
    return !text.includes('access to topic') || text.includes(`access to topic '${routingKey}' in`)
  }
  const [, limit] = /larger than (?:configured )?max size (\d+)/.exec(text) ?? []
  return limit !== undefined && content.length > Number(limit)
}

function transient(blames: 'broker' | 'topic', error: PublishError): PublishFailure {
  return { ok: false, kind: 'transient', error, blames }
}

function publishError(message: string): PublishError {
  return new PublishError('PUBLISH_FAILED', message)
}

function place({ exchange, routingKey }: RabbitMessage): string {
  return exchange === ''
    ? `the queue '${routingKey}'`
    : `the exchange '${exchange}' with the routing key '${routingKey}'`
}
