// What a publisher reports about an event that it had to send.

export type PublishResult = PublishSuccess | PublishFailure

export interface PublishSuccess {
  readonly ok: true
  readonly topic: string
  readonly key: string
  readonly partition: number | null
  readonly offset: string | null
}

export interface PublishFailure {
  readonly ok: false
  readonly kind: FailureKind
  readonly error: Error
  /** For `transient`: what is out of reach, only the event's topic or the whole broker. @default 'broker' */
  readonly blames?: 'broker' | 'topic'
}

/**
 * - `transient`: the destination's fault (unreachable, timeout, no leader). Uses up no attempt; the circuit of the
 *   destination opens.
 * - `permanent`: the message's fault (too large, not authorised). The event becomes a dead letter at once.
 * - `rejected`: a handler ran and threw. Uses up an attempt; the event is tried again after a backoff.
 * - `held`: not tried, because an earlier event of its lane failed in the same batch, or the batch took too long.
 */
export type FailureKind = 'transient' | 'permanent' | 'rejected' | 'held'
