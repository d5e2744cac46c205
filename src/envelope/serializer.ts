// The application's own serializer, such as one for a schema registry. It may fail for one event and not for others, be
// slow, or never settle. Its error messages may quote the payload, so our errors leave them out.
import { types } from 'node:util'
import { formatDuration } from '../checks/duration.ts'
import { isRetriable, PublishError, withoutText } from '../errors.ts'
import type { OutboxEvent } from '../event/event.ts'
import type { PublishFailure } from '../event/publish-result.ts'
import { raceTimeout } from '../runtime/race-timeout.ts'
import { messageHeaders, type WireMessage, type Writer } from './wire-message.ts'

/** What a serializer returns: a value, or a value with headers. Text is sent as UTF-8, bytes as they are. */
export type Serialized = string | Uint8Array | SerializedMessage

export interface SerializedMessage {
  readonly value: string | Uint8Array
  /** Added to the standard headers. A header of the same name replaces the standard one. */
  readonly headers?: Readonly<Record<string, string>>
  /** On Kafka the header `content-type`, on RabbitMQ the property `contentType`. @default none */
  readonly contentType?: string
}

/**
 * Makes the value of a message. If it throws, the event becomes a dead letter, unless the error has `retriable: true`;
 * then the event waits. The publisher calls it again each time the event is sent again.
 */
export type EventSerializer = (event: OutboxEvent) => Serialized | Promise<Serialized>

/** Longer than a registry should take, but shorter than the default publishTimeout, so that the error names it. */
const PATIENCE_MS = 3_000

export function writeWith(serialize: EventSerializer): Writer {
  return (event) => {
    try {
      const answer = serialize(event)
      return isPromise(answer) ? writeLater(event, answer) : toMessage(event, answer)
    } catch (thrown) {
      return failed(event, thrown)
    }
  }
}

async function writeLater(event: OutboxEvent, answer: PromiseLike<unknown>) {
  try {
    return toMessage(event, await answer)
  } catch (thrown) {
    return failed(event, thrown)
  }
}

/**
 * Writes a whole batch before any of it is sent, so that no event overtakes one that takes longer to write. `windowMs`
 * is how long the batch may start new sends; half of it is left for sending.
 */
export async function writeAll(
  events: readonly OutboxEvent[],
  write: Writer,
  windowMs: number,
): Promise<(WireMessage | PublishFailure)[]> {
  const written = events.map(write)
  if (written.every(isWritten)) return written
  const patienceMs = Math.min(PATIENCE_MS, windowMs / 2)
  const waiting = written.map(async (message, n) => {
    if (!isPromise(message)) return message
    const answer = await raceTimeout(Promise.resolve(message), patienceMs)
    return answer === 'late' ? tookTooLong(events[n]!, patienceMs) : answer
  })
  return await Promise.all(waiting)
}

/** For a failure that is not the broker's fault and that another attempt would not fix. */
export function unwritable(message: string, cause?: Error): PublishFailure {
  const error = new PublishError('SERIALIZER_FAILED', message, cause && { cause })
  return { ok: false, kind: 'permanent', error }
}

function toMessage(event: OutboxEvent, answer: unknown): WireMessage | PublishFailure {
  const message = isValue(answer) ? { value: answer } : answer
  if (!isMessage(message)) {
    return unwritable(
      `the serializer of '${event.type}' must return bytes, a string, or { value, headers?, contentType? } with strings as headers, but returned something else; correct it`,
    )
  }
  const { value, headers, contentType } = message
  return {
    // Copied, because a serializer may reuse its buffer for the next event.
    value: typeof value === 'string' ? value : Buffer.from(value),
    headers: { ...messageHeaders(event), ...headers },
    contentType,
  }
}

function isValue(value: unknown): value is string | Uint8Array {
  return typeof value === 'string' || types.isUint8Array(value)
}

const FIELDS = new Set(['value', 'headers', 'contentType'])

function isMessage(answer: unknown): answer is SerializedMessage {
  if (typeof answer !== 'object' || answer === null) return false
  const { value, headers = {}, contentType = 'any' } = answer as Partial<SerializedMessage>
  if (!isValue(value) || typeof contentType !== 'string' || contentType === '') return false
  if (typeof headers !== 'object' || headers === null) return false
  // As at emit: a kafkajs consumer cannot read a header with a name that every object inherits.
  const areTexts = Object.entries(headers).every(([name, text]) => {
    return name !== '' && !(name in Object.prototype) && typeof text === 'string'
  })
  return areTexts && Object.keys(answer).every((field) => FIELDS.has(field))
}

function failed(event: OutboxEvent, thrown: unknown): PublishFailure {
  const cause = withoutText(thrown)
  // An unreachable registry is an outage, not a fault of the event.
  if (isRetriable(thrown)) {
    return outage(
      `the serializer of '${event.type}' failed with a retriable ${cause.name}; the outbox will try again`,
      cause,
    )
  }
  return unwritable(
    `the serializer of '${event.type}' failed with ${cause.name}; fix it and retry the event`,
    cause,
  )
}

function tookTooLong(event: OutboxEvent, ms: number): PublishFailure {
  return outage(
    `the serializer of '${event.type}' did not finish within ${formatDuration(ms)}; the outbox will try again`,
  )
}

function outage(message: string, cause?: Error): PublishFailure {
  const error = new PublishError('SERIALIZER_FAILED', message, cause && { cause })
  return { ok: false, kind: 'transient', error, blames: 'topic' }
}

function isWritten(message: ReturnType<Writer>): message is WireMessage | PublishFailure {
  return !isPromise(message)
}

function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as Partial<PromiseLike<T>> | null | undefined)?.then === 'function'
}
