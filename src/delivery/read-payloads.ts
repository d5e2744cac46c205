// With the option payloads.read, the table does not hold what is sent. Reads a batch before any of it is sent. An event that
// cannot be read fails by itself, and holds back the later ones of its lane as one that the publisher could not send would.
// Reading takes time, and a function may be frozen meanwhile, so rule 4 is checked again after it.
import { formatDuration } from '../checks/duration.ts'
import { isRetriable, PublishError, withoutText } from '../errors.ts'
import type { OutboxEvent } from '../event/event.ts'
import type { PublishFailure, PublishResult } from '../event/publish-result.ts'
import { type PayloadHook, readPayload } from '../event/stored-payload.ts'
import { raceTimeout } from '../runtime/race-timeout.ts'
import { type PublishRules, TOOK_TOO_LONG } from '../publishers/publisher.ts'

/** As long as a serializer has. Half of the time of a send at most, so that the rest is left for the broker. */
const PATIENCE_MS = 3_000

export function readPatienceMs(timeoutMs: number): number {
  return Math.min(PATIENCE_MS, timeoutMs / 2)
}

export interface Reading {
  readonly read: PayloadHook
  readonly patienceMs: number
  /** Whether the send of the event at this place may still begin. */
  readonly mayBegin: (n: number) => boolean
}

/** Publishes what could be read. Returns one result per event, in the given order. */
export async function publishRead(
  events: readonly OutboxEvent[],
  { read, patienceMs, mayBegin }: Reading,
  { deadLettersHold = false }: PublishRules,
  publish: (events: readonly OutboxEvent[]) => Promise<readonly PublishResult[]>,
): Promise<readonly PublishResult[]> {
  const answers = await Promise.all(events.map((event) => readInTime(event, read, patienceMs)))
  const failedLanes = new Map<number, PublishFailure>()
  const entries = answers.map((readEvent, n): OutboxEvent | PublishFailure => {
    const { lane } = events[n]!
    const failed = failedLanes.get(lane)
    if (failed) return { ...failed, kind: 'held' }
    const answer = isFailure(readEvent) || mayBegin(n) ? readEvent : TOOK_TOO_LONG
    if (isFailure(answer) && (answer.kind !== 'permanent' || deadLettersHold)) {
      failedLanes.set(lane, answer)
    }
    return answer
  })
  const readable = entries.filter((entry): entry is OutboxEvent => !isFailure(entry))
  const results = readable.length > 0 ? (await publish(readable)).values() : [].values()
  return entries.map((entry) => (isFailure(entry) ? entry : results.next().value!))
}

async function readInTime(
  event: OutboxEvent,
  read: PayloadHook,
  patienceMs: number,
): Promise<OutboxEvent | PublishFailure> {
  const call = `payloads.read() of '${event.type}'`
  try {
    const payload = await raceTimeout(
      readPayload(event, read).then((text) => ({ text })),
      patienceMs,
    )
    if (payload !== 'late') return { ...event, payload: payload.text }
    return outage(
      `${call} did not finish within ${formatDuration(patienceMs)}; the outbox will try again`,
    )
  } catch (thrown) {
    const cause = withoutText(thrown)
    if (isRetriable(thrown)) {
      return outage(
        `${call} failed with a retriable ${cause.name}; the outbox will try again`,
        cause,
      )
    }
    const message = `${call} failed with ${cause.name}; fix it and retry the event`
    const error = new PublishError('PAYLOAD_READ_FAILED', message, { cause })
    return { ok: false, kind: 'permanent', error }
  }
}

/** As with a serializer, the topic waits: with its next event as a probe, and without attempts. */
function outage(message: string, cause?: Error): PublishFailure {
  const error = new PublishError('PAYLOAD_READ_FAILED', message, cause && { cause })
  return { ok: false, kind: 'transient', error, blames: 'topic' }
}

function isFailure(entry: OutboxEvent | PublishFailure): entry is PublishFailure {
  return 'ok' in entry
}
