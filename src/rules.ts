// The decisions of the protocol, without clock, database or broker: the steps ask them, and the model in
// test/model asks the very same ones while it walks through all that can happen to a few events.
import { backoffMs, type BackoffOptions } from './backoff.ts'
import type { OutboxEvent } from './events.ts'
import type { PublishFailure } from './publishers/publisher.ts'

/** What the payloads of one batch may come to: little enough to be sent well within a timeout. */
export const BATCH_CHARACTERS = 4_000_000

/** Rule 4: below half of the lease a send may not begin; its row is the fallback's business. */
export function isFresh(leftMs: number, leaseMs: number): boolean {
  return leftMs > leaseMs / 2
}

/** Rule 5: what is held is renewed from here on, early enough to be fresh all the time. */
export function isAged(leftMs: number, leaseMs: number): boolean {
  return leftMs < leaseMs * 0.75
}

/**
 * Whether an event may queue in a lane: everything before it in its aggregate that had not gone out when it
 * was saved (`after`) has gone, or goes, through the same lane.
 */
export function mayFollow(after: number | null, coveredSeq: number): boolean {
  return after === null || after <= coveredSeq
}

/** Once an item is left, those after it under the same key are left too: nothing overtakes. */
export function splitInOrder<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  take: (item: Item) => boolean,
): { taken: Item[]; left: Item[] } {
  const taken: Item[] = []
  const left: Item[] = []
  const leftKeys = new Set<string>()
  for (const item of items) {
    const key = keyOf(item)
    if (!leftKeys.has(key) && take(item)) taken.push(item)
    else {
      left.push(item)
      leftKeys.add(key)
    }
  }
  return { taken, left }
}

/** What a failure means for its event. Only what is the event's own fault counts as an attempt. */
export function classifyFailure(
  { attempts, maxAttempts }: Pick<OutboxEvent, 'attempts' | 'maxAttempts'>,
  { kind, error }: PublishFailure,
  backoff: BackoffOptions,
) {
  switch (kind) {
    case 'transient':
      return { kind: 'failed', error, counts: false, retryInMs: 0 } as const
    case 'permanent':
      return { kind: 'dead', error } as const
    case 'rejected': {
      const attempt = attempts + 1
      if (attempt >= maxAttempts) return { kind: 'dead', error } as const
      return {
        kind: 'failed',
        error,
        counts: true,
        retryInMs: backoffMs(attempt, backoff),
      } as const
    }
    case 'held':
      return { kind: 'untried' } as const
  }
}

/** Whether an event with this outcome keeps the later ones of its aggregate back. */
export function holdsOthers(
  kind: 'published' | 'failed' | 'dead' | 'untried',
  deadLettersHold: boolean,
): boolean {
  return kind === 'dead' ? deadLettersHold : kind !== 'published'
}
