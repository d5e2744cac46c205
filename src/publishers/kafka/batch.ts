// One batch on its way to Kafka: what became of each event, and which aggregates may not go on.
import type { Message } from 'kafkajs'
import type { WireMessage } from '../envelope/wire-message.ts'
import { orderingKey, type OutboxEvent } from '../events.ts'
import { refuseTopic } from './kafka-errors.ts'
import type { PublishFailure, PublishResult, PublishRules } from './publisher.ts'

interface Entry {
  readonly event: OutboxEvent
  /** Its place in the batch. */
  readonly place: number
}

/** An event on its way to one partition. */
export interface Outgoing extends Entry {
  readonly message: Message
  readonly bytes: number
}

/** One that its envelope could not be made for. */
interface Unwritten extends Entry {
  readonly failure: PublishFailure
}

export class KafkaBatch {
  readonly #entries: readonly (Outgoing | Unwritten)[]
  readonly #rules: PublishRules
  readonly #results = new Map<Entry, PublishResult>()
  readonly #failedKeys = new Map<string, { failure: PublishFailure; place: number }>()
  /** When no further request may begin. */
  readonly closesAt: number

  constructor(
    events: readonly OutboxEvent[],
    messages: readonly (WireMessage | PublishFailure)[],
    rules: PublishRules,
    closesAt: number,
  ) {
    this.#entries = events.map((event, place) => toEntry(event, messages[place]!, place))
    this.#rules = rules
    this.closesAt = closesAt
  }

  settle(entry: Entry, result: PublishResult): void {
    this.#results.set(entry, result)
    if (result.ok || (result.kind === 'permanent' && !this.#rules.deadLettersHold)) return
    this.#failedKeys.set(orderingKey(entry.event), { failure: result, place: entry.place })
  }

  /** Settles for them all that they were not tried. */
  hold(entries: readonly Entry[], failure: PublishFailure): void {
    for (const entry of entries) this.settle(entry, { ...failure, kind: 'held' })
  }

  /** Those that may still be sent. The others are settled: they, their topic or their aggregate are at fault. */
  admit(entries: readonly (Outgoing | Unwritten)[]): Outgoing[] {
    return entries.filter((entry): entry is Outgoing => {
      const failed = this.#failureBefore(entry)
      if (failed) {
        this.hold([entry], failed)
        return false
      }
      const refused = 'failure' in entry ? entry.failure : refuseTopic(entry.event.topic)
      if (refused) this.settle(entry, refused)
      return !refused
    })
  }

  // One that could not be written is known to fail before those in front of it are sent.
  #failureBefore({ event, place }: Entry): PublishFailure | undefined {
    const failed = this.#failedKeys.get(orderingKey(event))
    return failed && failed.place < place ? failed.failure : undefined
  }

  /** Usually one. An aggregate whose events go to several topics takes its turns, to keep its order. */
  rounds(): (Outgoing | Unwritten)[][] {
    const rounds: (Outgoing | Unwritten)[][] = []
    const last = new Map<string, { topic: string; round: number }>()
    for (const entry of this.#entries) {
      const key = orderingKey(entry.event)
      const { topic } = entry.event
      const before = last.get(key) ?? { topic, round: 0 }
      const round = before.round + (before.topic === topic ? 0 : 1)
      last.set(key, { topic, round })
      ;(rounds[round] ??= []).push(entry)
    }
    return rounds
  }

  results(): PublishResult[] {
    return this.#entries.map((entry) => this.#results.get(entry)!)
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
  let bytes = Buffer.byteLength(value) + Buffer.byteLength(event.aggregateId)
  for (const [name, text] of Object.entries(headers)) {
    bytes += Buffer.byteLength(name) + Buffer.byteLength(text)
  }
  return { event, place, bytes, message: { key: event.aggregateId, value, headers } }
}
