// One batch on its way to Kafka: the result of each event, and the lanes that may not continue.
import type { WireMessage } from '../../envelope/wire-message.ts'
import type { OutboxEvent } from '../../event/event.ts'
import { refuseTopic } from './errors.ts'
import type { PublishFailure, PublishResult } from '../../event/publish-result.ts'
import type { PublishRules } from '../publisher.ts'

/** A message as every client takes it. */
interface KafkaMessage extends Pick<WireMessage, 'value' | 'headers'> {
  readonly key: string
  /** In ms. By the database's clock: a broker refuses what is an hour ahead of its own, and a host's clock may be. */
  readonly timestamp: string
  /** Set when it is known, before the message is sent. */
  partition?: number
}

interface Entry {
  readonly event: OutboxEvent
  /** Its place in the batch. */
  readonly place: number
}

/** An event on its way to one partition. */
export interface Outgoing extends Entry {
  readonly message: KafkaMessage
}

/** An event whose envelope could not be written. */
interface Unwritten extends Entry {
  readonly failure: PublishFailure
}

export class KafkaBatch {
  readonly entries: readonly (Outgoing | Unwritten)[]
  readonly #rules: PublishRules
  /** By the place of the event. */
  readonly #results: PublishResult[] = []
  readonly #failedLanes = new Map<number, { failure: PublishFailure; place: number }>()
  /** When no further request may begin, by performance.now(). */
  readonly closesAt: number

  constructor(
    events: readonly OutboxEvent[],
    messages: readonly (WireMessage | PublishFailure)[],
    rules: PublishRules,
    closesAt: number,
  ) {
    this.entries = events.map((event, place) => toEntry(event, messages[place]!, place))
    this.#rules = rules
    this.closesAt = closesAt
  }

  conclude(entry: Entry, result: PublishResult): void {
    this.#results[entry.place] = result
    if (result.ok || (result.kind === 'permanent' && !this.#rules.deadLettersHold)) return
    this.#failedLanes.set(entry.event.lane, { failure: result, place: entry.place })
  }

  /** Marks events that were not tried. */
  hold(entries: readonly Entry[], failure: PublishFailure): void {
    for (const entry of entries) this.conclude(entry, { ...failure, kind: 'held' })
  }

  /** Returns the entries that may still be sent. The others get a failure: their own, their topic's or their lane's. */
  admit(entries: readonly (Outgoing | Unwritten)[]): Outgoing[] {
    return entries.filter((entry): entry is Outgoing => {
      const failed = this.#failureBefore(entry)
      if (failed) {
        this.hold([entry], failed)
        return false
      }
      const refused = 'failure' in entry ? entry.failure : refuseTopic(entry.event.topic)
      if (refused) this.conclude(entry, refused)
      return !refused
    })
  }

  // An event that could not be written is known to fail before the events ahead of it are sent.
  #failureBefore({ event, place }: Entry): PublishFailure | undefined {
    const failed = this.#failedLanes.get(event.lane)
    return failed && failed.place < place ? failed.failure : undefined
  }

  results(): PublishResult[] {
    return this.entries.map(({ place }) => this.#results[place]!)
  }
}

function toEntry(
  event: OutboxEvent,
  written: WireMessage | PublishFailure,
  place: number,
): Outgoing | Unwritten {
  if ('ok' in written) return { event, place, failure: written }
  const { value, headers, contentType } = written
  if (contentType !== undefined) headers['content-type'] = contentType
  const timestamp = String(event.leasedAt.getTime())
  return { event, place, message: { key: event.aggregateId, value, headers, timestamp } }
}
