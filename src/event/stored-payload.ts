// The option `payloads`: what the table holds instead of a payload, such as a ciphertext, or a reference to a large one that
// is kept elsewhere. write() runs between the end of the work and the save, so the transaction stays open meanwhile; read()
// is called by delivery/read-payloads.ts. A crash in between leaves what write() has put elsewhere, and no event.
import { EventRefusedError, withoutText } from '../errors.ts'
import type { EventRef, PreparedEvent } from './event.ts'
import { isJsonText, isStorableJson } from './payload.ts'
import { requireSize } from './prepare.ts'

/** An event without its payload. */
export interface EventHead extends EventRef {
  readonly headers: Readonly<Record<string, string>>
}

export interface PayloadHooks {
  /**
   * Returns what the table holds for a payload; both are JSON text. Called before the save, for all events of a unit of work
   * at once. If it throws, the unit rolls back. What it has written elsewhere stays, also if the unit rolls back later.
   * @default the payload itself
   */
  write?: PayloadHook
  /**
   * Returns the payload to send for what the table holds; both are JSON text. Called before each send. If it throws, the
   * event becomes a dead letter, unless the error has `retriable: true`; then the event waits, as it does if the call takes
   * longer than 3 s or half of publishTimeout.
   * @default what the table holds is sent
   */
  read?: PayloadHook
}

export type PayloadHook = (text: string, event: EventHead) => string | Promise<string>

/** The events as they are stored. Resolves or rejects when every call has ended, so that none outlives the transaction. */
export async function writePayloads(
  events: readonly PreparedEvent[],
  write: PayloadHook,
  maxPayloadBytes: number,
): Promise<PreparedEvent[]> {
  const written = await Promise.allSettled(events.map((event) => callHook(write, event)))
  return written.map((result, n) => {
    const event = events[n]!
    const { type, headers } = event
    if (result.status === 'rejected') {
      const cause = withoutText(result.reason)
      throw refuse(type, `failed with ${cause.name}`, cause)
    }
    const payload = result.value
    if (payload !== event.payload && !isStorableJson(payload)) {
      throw refuse(
        type,
        'must return JSON text that Postgres can store, and returned something else',
      )
    }
    requireSize(type, payload, headers, maxPayloadBytes)
    return { ...event, payload }
  })
}

/** The payload to send. Rejects with what the hook threw, or if it did not return JSON text. */
export async function readPayload(event: PreparedEventRef, read: PayloadHook): Promise<string> {
  const payload = await callHook(read, event)
  if (payload === event.payload || isJsonText(payload)) return payload
  throw new TypeError('payloads.read() must return JSON text')
}

type PreparedEventRef = Pick<PreparedEvent, keyof EventHead | 'payload'>

async function callHook(hook: PayloadHook, event: PreparedEventRef): Promise<string> {
  const { id, type, aggregateType, aggregateId, topic, headers, payload } = event
  return await hook(payload, { id, type, aggregateType, aggregateId, topic, headers })
}

function refuse(type: string, what: string, cause?: Error): EventRefusedError {
  return new EventRefusedError(
    'PAYLOAD_WRITE_FAILED',
    `${type}: payloads.write() ${what}; the unit of work rolls back`,
    cause && { cause },
  )
}
