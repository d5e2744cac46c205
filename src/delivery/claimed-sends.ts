// Sends what a claim took, in batches as the publisher wants them: by lane, by topic, or all at once. Where they are by
// topic, a round does not wait for one that takes long: the send goes on without it. While a topic has two sends under way,
// nothing more of it is claimed. So a topic that hangs costs the others a second, not the time until it is given up.
import { groupBy } from '../runtime/group-by.ts'
import { raceTimeout } from '../runtime/race-timeout.ts'
import type { Bell } from '../runtime/bell.ts'
import type { Publisher } from '../publishers/publisher.ts'
import type { LeasedEvent } from './leased-event.ts'
import type { Leases } from './leases.ts'
import type { Sender } from './send.ts'

/** How long a round waits for a topic. */
const PATIENCE_MS = 1_000
/** As many as there are rounds at once, so that a broker that is merely slow is kept busy. */
const MOST_PER_TOPIC = 2

export interface ClaimedSendsParts {
  readonly publisher: Pick<Publisher, 'orderScope' | 'perLane'>
  readonly sender: Pick<Sender, 'send'>
  readonly leases: Pick<Leases, 'drop'>
  /** Rung when a topic may be claimed again. */
  readonly freed: Bell
}

export class ClaimedSends {
  readonly #parts: ClaimedSendsParts
  /** The sends under way, by topic. */
  readonly #sending = new Map<string, Set<Promise<void>>>()

  constructor(parts: ClaimedSendsParts) {
    this.#parts = parts
  }

  /** Resolves when every known outcome is recorded, but for those of topics that take long. */
  async send(batch: readonly LeasedEvent[]): Promise<void> {
    const { perLane, orderScope } = this.#parts.publisher
    if (perLane) {
      const lanes = groupBy(batch, ({ event }) => event.lane)
      await Promise.all([...lanes.values()].map((lane) => this.#sendPart(lane)))
    } else if (orderScope === 'topic') {
      const topics = groupBy(batch, ({ event }) => event.topic)
      await Promise.all([...topics].map(([topic, part]) => this.#sendTopic(topic, part)))
    } else {
      await this.#sendPart(batch)
    }
  }

  /** Topics of which nothing more may be claimed now. */
  get busyTopics(): string[] {
    return [...this.#sending].flatMap(([topic, { size }]) => (size < MOST_PER_TOPIC ? [] : [topic]))
  }

  /** Resolves when the sends that are under way now are recorded. */
  async idle(): Promise<void> {
    await Promise.all([...this.#sending.values()].flatMap((sends) => [...sends]))
  }

  async #sendTopic(topic: string, part: readonly LeasedEvent[]): Promise<void> {
    const sending = this.#sendPart(part)
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

  async #sendPart(part: readonly LeasedEvent[]): Promise<void> {
    const { sender, leases } = this.#parts
    const { recorded, over } = await sender.send(part)
    void over.then(() => leases.drop(part))
    await recorded
  }
}
