// Order, in one place. The promise: events of one lane reach their destination in the order in which they were saved
// (`seq`), across processes, even when one of them fails. It holds between a and b if a was saved first and had
// committed when b was saved: always, if their units lock the aggregate. Units that overlap without a lock have no
// order. An event that is sent twice may appear again later, under the same id.
//
// The invariant: an event is sent only when every earlier event of its lane that the save could see is published (or
// dead, unless dead letters hold their lane), or went out ahead of it through the same process and was acknowledged,
// or is ahead of it in the same batch, in which the publisher keeps the order.
//
// What upholds it:
// - The save (store/outbox/save.ts) returns what the event has to follow: the seqs of all earlier events of its lane
//   that are committed and unfinished, plus a dead letter if dead letters hold their lane. A set, not a number: an event
//   below the highest seq may be one whose COMMIT this process never heard of.
// - The immediate path (immediate.ts) decides after COMMIT is confirmed, not at the INSERT. It accepts the event only
//   if mayFollow() agrees: all of that set is safe to follow. Otherwise it gives the event back.
// - Safe to follow (SafeToFollow) are events that wait or are in flight on the immediate path, and events that it got
//   an ack for. An event that was given back, turned away, refused, dead or past its publishTimeout is not. To forget
//   an event is always right; it only costs its follower a detour through the fallback.
// - A lane is in one send at a time. When one of its events does not go out, everything behind it in this process is
//   given back (`abandon` in immediate.ts). Inside a batch, splitInOrder() and the publisher ('held') do the same.
// - A claim (store/outbox/claim.ts) takes from each lane a run that starts at its head, its oldest unfinished event: a row
//   goes only if the unfinished row ahead of it in its lane goes too. A lane whose head is leased, waits for its retry, or
//   is for an unreachable topic gives nothing.
import type { Outcome } from './leased-event.ts'

/** Whether an event may queue behind the events that it has to follow. */
export function mayFollow(
  follows: readonly number[] | 'unknown',
  isSafe: (seq: number) => boolean,
): boolean {
  return follows !== 'unknown' && follows.every(isSafe)
}

/** Once an item is left, later items of the same lane are left too, so that nothing overtakes. */
export function splitInOrder<Item>(
  items: readonly Item[],
  laneOf: (item: Item) => number | string,
  take: (item: Item) => boolean,
): { taken: Item[]; left: Item[] } {
  const taken: Item[] = []
  const left: Item[] = []
  const leftLanes = new Set<number | string>()
  for (const item of items) {
    const lane = laneOf(item)
    if (!leftLanes.has(lane) && take(item)) taken.push(item)
    else {
      left.push(item)
      leftLanes.add(lane)
    }
  }
  return { taken, left }
}

/** Whether an event with this outcome holds back the later events of its lane. */
export function keepsOthersBack(kind: Outcome['kind'], deadLettersHold: boolean): boolean {
  return kind === 'dead' ? deadLettersHold : kind !== 'published'
}

/** Rule 9: at most twice this many acks are remembered. By seq alone: do not restart the identity of a table in use. */
const MOST_ACKS = 50_000

/** The events, by seq, that a later event of their lane may follow through this process. */
export class SafeToFollow {
  readonly #queued = new Set<number>()
  /** Acks of the current interval and of the one before. */
  #acked = new Set<number>()
  #ackedBefore = new Set<number>()

  /** Whether an event that has to follow these may queue here. */
  letsFollow(follows: readonly number[] | 'unknown'): boolean {
    return mayFollow(follows, (seq) => {
      return this.#queued.has(seq) || this.#acked.has(seq) || this.#ackedBefore.has(seq)
    })
  }

  queue(seq: number): void {
    this.#queued.add(seq)
  }

  /** Remembers the event for a while, because an INSERT that ran before the ack was recorded still names it. */
  acknowledge(seq: number): void {
    this.#queued.delete(seq)
    this.#acked.add(seq)
    if (this.#acked.size >= MOST_ACKS) this.forgetOldAcks()
  }

  /** The event does not go out from here, or its outcome is unknown. */
  remove(seq: number): void {
    this.#queued.delete(seq)
  }

  /** Called once per threshold. A follower whose COMMIT took longer than that has lost its lease anyway. */
  forgetOldAcks(): void {
    this.#ackedBefore = this.#acked
    this.#acked = new Set()
  }
}
