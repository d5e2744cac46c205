// What the results of a send show of its destinations: which of them responded, and which are to blame. An event that failed
// before anything of it was sent shows nothing of them.
import { PublishError } from '../errors.ts'
import type { PublishFailure, PublishResult } from '../event/publish-result.ts'
import type { LeasedEvent } from './leased-event.ts'

export interface Reach {
  /** Topics that responded and have no transient failure. Even a refusal is a response. */
  readonly responding: readonly string[]
  /** Whether the broker responded: to a topic that responds, or with a failure that blames a topic. */
  readonly hasAnswered: boolean
  /** Whether anything was sent. */
  readonly wasSent: boolean
  readonly failures: readonly ReachFailure[]
}

interface ReachFailure {
  readonly topic: string
  readonly failure: PublishFailure
  /** It blames its topic, but shows nothing of the broker. */
  readonly isUnsent: boolean
}

const BEFORE_THE_SEND: ReadonlySet<string> = new Set(['PAYLOAD_READ_FAILED', 'SERIALIZER_FAILED'])

export function readReach(batch: readonly LeasedEvent[], results: readonly PublishResult[]): Reach {
  const responded = new Set<string>()
  const silent = new Set<string>()
  const held = new Set<string>()
  const unsent = new Set<string>()
  const failures: ReachFailure[] = []
  for (const [n, result] of results.entries()) {
    const { topic } = batch[n]!.event
    const isUnsent = !result.ok && isBeforeTheSend(result)
    if (isUnsent) unsent.add(topic)
    else if (result.ok || result.kind === 'permanent' || result.kind === 'rejected')
      responded.add(topic)
    else (result.kind === 'held' ? held : silent).add(topic)
    if (!result.ok && result.kind === 'transient')
      failures.push({ topic, failure: result, isUnsent })
  }
  // Held by what failed in its lane: by the destination, unless that was not sent either.
  for (const topic of held) if (!unsent.has(topic)) silent.add(topic)
  const answering = [...responded].filter((topic) => !silent.has(topic))
  const troubled = new Set(failures.map(({ topic }) => topic))
  return {
    responding: answering.filter((topic) => !troubled.has(topic)),
    // A publisher that blames the topic has heard from the broker. Otherwise the topic's events, if they are the oldest,
    // would use up every probe of the broker.
    hasAnswered:
      answering.length > 0 ||
      failures.some(({ failure, isUnsent }) => failure.blames === 'topic' && !isUnsent),
    wasSent: responded.size + silent.size > 0,
    failures,
  }
}

function isBeforeTheSend({ error }: PublishFailure): boolean {
  return error instanceof PublishError && BEFORE_THE_SEND.has(error.code)
}
