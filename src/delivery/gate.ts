// Decides whether an event may go now, as far as room, circuits and leases are concerned: before the save, at the
// hand-over, before a claim and before a send. order.ts decides what it may follow.
import type { EventRef } from '../event/event.ts'
import type { TopicSelection } from '../publishers/router.ts'
import type { TopicLimits } from '../store/outbox/outbox-store.ts'
import type { Circuits } from './circuits.ts'
import type { LeasedEvent } from './leased-event.ts'
import type { Leases } from './leases.ts'

/** What one claim of the fallback may take. */
export interface ClaimPlan extends TopicLimits {
  readonly limit: number
  /** How many events it may look at. */
  readonly read: number
  /** One event, to find out whether its destination is back. */
  readonly isProbe: boolean
}

/** The oldest events of a destination that was away may all have to wait for others of their lanes. */
const PROBE = { limit: 1, read: 250, isProbe: true } as const

export interface GateParts {
  readonly circuits: Circuits
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

  /** Whether the immediate path has room for these and could send them. */
  takes(events: readonly EventRef[]): boolean {
    const { leases, maxInFlight } = this.#parts
    const fits = leases.size + events.length <= maxInFlight
    const { circuits } = this.#parts
    return this.#isTaking && fits && events.every(({ topic }) => circuits.isPassable(topic))
  }

  /** Whether any of these could be sent now, as far as the circuits know. A circuit rings when it lets a probe pass. */
  reachesAny(events: readonly EventRef[]): boolean {
    return events.some(({ topic }) => this.#parts.circuits.isPassable(topic))
  }

  /** Right before a send: checks rule 4 and the circuits. The first caller gets the probe. */
  admit(leased: LeasedEvent): boolean {
    return this.#parts.leases.isFresh(leased) && this.#parts.circuits.admit(leased.event.topic)
  }

  /**
   * What the fallback may claim, but for busy topics: nothing, one probe, or all that is in reach and one probe per topic
   * due for it.
   */
  claims(size: number, busyTopics: readonly string[] = []): ClaimPlan[] {
    const { circuits, topics } = this.#parts
    const { broker, blockedTopics, halfOpenTopics, topicsToProbe } = circuits.claimable()
    const { only: onlyTopics } = topics
    const exceptTopics = [...topics.except, ...blockedTopics, ...busyTopics]
    if (broker === 'out of reach') return []
    if (broker === 'to probe') return [{ ...PROBE, onlyTopics, exceptTopics }]
    const probes = topicsToProbe.map((topic): ClaimPlan => {
      return { ...PROBE, onlyTopics: [topic], exceptTopics: [] }
    })
    const inReach = { onlyTopics, exceptTopics: [...exceptTopics, ...halfOpenTopics] }
    return [{ limit: size, read: size, isProbe: false, ...inReach }, ...probes]
  }

  /** Nothing of the topic can be claimed, so there is no point in asking again with each round. */
  noProbeFor(topics: readonly string[]): void {
    for (const topic of topics) this.#parts.circuits.noProbeFor(topic)
  }
}
