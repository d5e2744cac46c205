// Decides by room, pauses, circuits and leases whether an event may go now: before the save, at the
// hand-over, before a claim and before a send. order.ts decides what it may follow.
import type { EventRef } from '../event/event.ts'
import type { TopicSelection } from '../publishers/router.ts'
import type { TopicLimits } from '../store/outbox/outbox-store.ts'
import type { Circuits } from './circuits.ts'
import type { LeasedEvent } from './leased-event.ts'
import type { Leases } from './leases.ts'
import type { Pauses } from './pauses.ts'

/** What one claim of the fallback may take. */
export interface ClaimPlan extends TopicLimits {
  readonly limit: number
  /** How many events it may look at. */
  readonly read: number
  /** One event, to find out whether its destination is back. */
  readonly isProbe: boolean
}

/** After an outage, the oldest events of a destination may all have to wait for others of their lanes. */
const PROBE = { limit: 1, read: 250, isProbe: true } as const

export interface GateParts {
  readonly circuits: Circuits
  readonly pauses: Pauses
  readonly leases: Leases
  readonly topics: TopicSelection
  readonly maxInFlight: number
}

export class Gate {
  readonly #parts: GateParts
  #isTaking = false

  constructor(parts: GateParts) {
    this.#parts = parts
  }

  /** Lets the immediate path accept events. */
  startTaking(): void {
    this.#isTaking = true
  }

  /** From here on, new events are left to the fallback. Accepted events still go out. */
  stopTaking(): void {
    this.#isTaking = false
  }

  /**
   * Whether the immediate path has room for these and could send them. Paused ones keep no other of their unit from going
   * out at once, as a pause may last for days: only if all are paused, none is taken.
   */
  takes(events: readonly EventRef[]): boolean {
    const { leases, maxInFlight, pauses, circuits } = this.#parts
    const fits = leases.size + events.length <= maxInFlight
    if (!this.#isTaking || !fits) return false
    const going = pauses.areAny ? events.filter(({ topic }) => !pauses.isPaused(topic)) : events
    if (going.length === 0 && events.length > 0) return false
    return going.every(({ topic }) => circuits.isPassable(topic))
  }

  /**
   * Whether any of these could be sent now, as far as pauses and circuits know. A circuit rings when it lets a probe pass,
   * and so does the end of a pause.
   */
  reachesAny(events: readonly EventRef[]): boolean {
    const { pauses, circuits } = this.#parts
    return events.some(({ topic }) => !pauses.isPaused(topic) && circuits.isPassable(topic))
  }

  /** Right before a send: checks rule 4, the pauses and the circuits. The first caller gets the probe. */
  admit(leased: LeasedEvent): boolean {
    const { leases, pauses, circuits } = this.#parts
    const { topic } = leased.event
    return leases.isFresh(leased) && !pauses.isPaused(topic) && circuits.admit(topic)
  }

  /** Rule 4 alone, once what came between admit() and the send is over. */
  isFresh(leased: LeasedEvent): boolean {
    return this.#parts.leases.isFresh(leased)
  }

  /**
   * What the fallback may claim, except busy and paused topics: nothing, one probe, or all that is in reach and one probe
   * per topic due for it.
   */
  claims(size: number, busyTopics: readonly string[] = []): ClaimPlan[] {
    const { circuits, pauses, topics } = this.#parts
    if (pauses.isEverything) return []
    const { broker, blockedTopics, halfOpenTopics, topicsToProbe } = circuits.claimable()
    const { only: onlyTopics } = topics
    const exceptTopics = [...topics.except, ...blockedTopics, ...busyTopics, ...pauses.topics]
    if (broker === 'out of reach') return []
    if (broker === 'to probe') return [{ ...PROBE, onlyTopics, exceptTopics }]
    const probes = topicsToProbe
      .filter((topic) => !pauses.isPaused(topic))
      .map((topic): ClaimPlan => ({ ...PROBE, onlyTopics: [topic], exceptTopics: [] }))
    const inReach = { onlyTopics, exceptTopics: [...exceptTopics, ...halfOpenTopics] }
    return [{ limit: size, read: size, isProbe: false, ...inReach }, ...probes]
  }

  /** Nothing of the topic can be claimed, so it is pointless to try again with each round. */
  noProbeFor(topics: readonly string[]): void {
    for (const topic of topics) this.#parts.circuits.noProbeFor(topic)
  }
}
