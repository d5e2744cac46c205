// A serializer of the user's own, such as one for a schema registry. It may fail for one event and not for its
// neighbours, take its time, or never answer. Its words may quote the payload, so an error has none of them.
import { types } from 'node:util'
import { formatDuration } from '../duration.ts'
import { PublishError, withoutText } from '../errors.ts'
import type { OutboxEvent } from '../events.ts'
import type { PublishFailure } from '../publishers/publisher.ts'
import { raceTimeout } from '../race-timeout.ts'
import { messageHeaders, type WireMessage, type Writer } from './wire-message.ts'

/** What a serializer answers: the value alone, or with what goes beside it. Text is sent as UTF-8, bytes as they are. */
export type Serialized = string | Uint8Array | SerializedMessage

export interface SerializedMessage {
  readonly value: string | Uint8Array
  /** Added to the standard ones. One of the same name takes its place. */
  readonly headers?: Readonly<Record<string, string>>
  /** On Kafka the header `content-type`, on RabbitMQ the property `contentType`. @default none */
  readonly contentType?: string
}

/**
 * Makes the value of a message. What it throws makes the event a dead letter, unless that says `retriable: true`:
 * then the event waits. It is asked again each time the event is sent again.
 */
export type EventSerializer = (event: OutboxEvent) => Serialized | Promise<Serialized>

/** Longer than a registry should take, and shorter than the default publishTimeout, so that it gets the blame. */
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
 * Writes a whole batch before any of it is sent: what takes longer is not overtaken by what follows. `windowMs` is
 * how long the batch may begin to send; half of that is left for sending.
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

/** For what no broker is to blame for, and no second try would help. */
export function unwritable(message: string, cause?: Error): PublishFailure {
  const error = new PublishError('SERIALIZER_FAILED', message, cause && { cause })
  return { ok: false, kind: 'permanent', error }
}

function toMessage(event: OutboxEvent, answer: unknown): WireMessage | PublishFailure {
  const message = isValue(answer) ? { value: answer } : answer
  if (!isMessage(message)) {
    return unwritable(
      `the serializer of '${event.type}' answered with something else than bytes, a string, or { value, headers?, contentType? } with texts in headers; correct it`,
    )
  }
  const { value, headers, contentType } = message
  return {
    // Copied, as a serializer may use its buffer again for the next event.
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
  // As at emit: kafkajs, as a consumer, cannot read a header whose name every object has.
  const areTexts = Object.entries(headers).every(([name, text]) => {
    return name !== '' && !(name in Object.prototype) && typeof text === 'string'
  })
  return areTexts && Object.keys(answer).every((field) => FIELDS.has(field))
}

function failed(event: OutboxEvent, thrown: unknown): PublishFailure {
  const cause = withoutText(thrown)
  // A registry that is away is an outage, not poison; kafkajs marks its own errors in the same way.
  if ((thrown as { retriable?: unknown } | null | undefined)?.retriable === true) {
    return outage(
      `the serializer of '${event.type}' cannot work for now: it failed with a retriable ${cause.name}`,
      cause,
    )
  }
  return unwritable(
    `the serializer of '${event.type}' failed with ${cause.name}; mend it and retry the event`,
    cause,
  )
}

function tookTooLong(event: OutboxEvent, ms: number): PublishFailure {
  return outage(`the serializer of '${event.type}' did not answer in ${formatDuration(ms)}`)
}

function outage(message: string, cause?: Error): PublishFailure {
  const error = new PublishError('SERIALIZER_FAILED', message, cause && { cause })
  return { ok: false, kind: 'transient', error, scope: 'topic' }
}

function isWritten(message: ReturnType<Writer>): message is WireMessage | PublishFailure {
  return !isPromise(message)
}

function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as Partial<PromiseLike<T>> | null | undefined)?.then === 'function'
}
