// Sends what a claim took, in batches as the publisher wants them: by lane, by topic, or all at once. Where they are by
// topic, a round does not wait for one that takes long: the send goes on without it. While a topic has three sends under
// way, nothing more of it is claimed. So a topic that hangs costs the others a second, not the time until its send times out.
import { groupBy } from '../runtime/group-by.ts'
import { raceTimeout } from '../runtime/race-timeout.ts'
import type { Bell } from '../runtime/bell.ts'
import type { Publisher } from '../publishers/publisher.ts'
import type { LeasedEvent } from './leased-event.ts'
import type { Leases } from './leases.ts'
import type { Sender } from './send.ts'
import type { Tally } from './tally.ts'

/** How long a round waits for a topic. */
const PATIENCE_MS = 1_000
/**
 * How many rounds run at once while there is a backlog, so that one claims and one records while another sends: with three, a
 * drain is 3 to 10 % faster than with two, and four are no faster. A topic may have as many sends under way, so that a
 * broker that is merely slow is kept busy.
 */
export const ROUNDS_AT_ONCE = 3

export interface ClaimedSendsParts {
  readonly publisher: Pick<Publisher, 'orderScope' | 'perLane'>
  readonly sender: Pick<Sender, 'send'>
  readonly leases: Pick<Leases, 'drop'>
  /** Rung when a topic may be claimed again. */
  readonly freed: Bell
  /** Called when each event of a part has its last outcome, which may be long after its round. */
  readonly onOver: (part: readonly LeasedEvent[]) => void
}

export class ClaimedSends {
  readonly #parts: ClaimedSendsParts
  readonly #underWay = new Set<Promise<void>>()
  /** Those of them that are of one topic. */
  readonly #sending = new Map<string, Set<Promise<void>>>()

  constructor(parts: ClaimedSendsParts) {
    this.#parts = parts
  }

  /** Resolves when every known outcome is recorded, except those of topics that take long. */
  async send(batch: readonly LeasedEvent[], tally?: Tally): Promise<void> {
    const { perLane, orderScope } = this.#parts.publisher
    if (perLane) {
      const lanes = groupBy(batch, ({ event }) => event.lane)
      await Promise.all([...lanes.values()].map((lane) => this.#sendPart(lane, tally)))
    } else if (orderScope === 'topic') {
      const topics = groupBy(batch, ({ event }) => event.topic)
      await Promise.all([...topics].map(([topic, part]) => this.#sendTopic(topic, part, tally)))
    } else {
      await this.#sendPart(batch, tally)
    }
  }

  /** Topics of which nothing more may be claimed now. */
  get busyTopics(): string[] {
    return [...this.#sending].flatMap(([topic, { size }]) => (size < ROUNDS_AT_ONCE ? [] : [topic]))
  }

  /** Resolves when the sends that rounds did not wait for are recorded. */
  async lateOver(): Promise<void> {
    await Promise.all([...this.#sending.values()].flatMap((sends) => [...sends]))
  }

  /** Resolves when all sends that are under way now are recorded. */
  async idle(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  async #sendTopic(topic: string, part: readonly LeasedEvent[], tally?: Tally): Promise<void> {
    const sending = this.#sendPart(part, tally)
    const over = this.#watch(topic, sending)
    if ((await raceTimeout(sending, PATIENCE_MS)) === 'late') void this.#ringAfter(over)
  }

  async #watch(topic: string, sending: Promise<void>): Promise<void> {
    const sends = this.#sending.get(topic) ?? new Set()
    this.#sending.set(topic, sends.add(sending))
    await sending
    sends.delete(sending)
    if (sends.size === 0) this.#sending.delete(topic)
  }

  async #ringAfter(over: Promise<void>): Promise<void> {
    await over
    this.#parts.freed.ring()
  }

  async #sendPart(part: readonly LeasedEvent[], tally?: Tally): Promise<void> {
    const sending = this.#sendAndCount(part, tally)
    this.#underWay.add(sending)
    await sending
    this.#underWay.delete(sending)
  }

  async #sendAndCount(part: readonly LeasedEvent[], tally?: Tally): Promise<void> {
    const { recorded, over } = await this.#parts.sender.send(part)
    void this.#endAfter(over, part)
    await recorded
    tally?.count(part)
  }

  async #endAfter(over: Promise<void>, part: readonly LeasedEvent[]): Promise<void> {
    await over
    this.#parts.leases.drop(part)
    this.#parts.onOver(part)
  }
}
