// One batch on its way to Kafka: what became of each event, and which aggregates may not go on.
import type { Message } from 'kafkajs'
import { messageHeaders, orderingKey, type OutboxEvent } from '../events.ts'
import { refuseTopic } from './kafka-errors.ts'
import type { PublishFailure, PublishResult, PublishRules } from './publisher.ts'

/** An event on its way to one partition. */
export interface Outgoing {
  readonly event: OutboxEvent
  readonly message: Message
  readonly bytes: number
}

export class KafkaBatch {
  readonly #outgoing: readonly Outgoing[]
  readonly #rules: PublishRules
  readonly #results = new Map<Outgoing, PublishResult>()
  readonly #failedKeys = new Map<string, PublishFailure>()
  /** When no further request may begin. */
  readonly closesAt: number

  constructor(events: readonly OutboxEvent[], rules: PublishRules, closesAt: number) {
    this.#outgoing = events.map(toOutgoing)
    this.#rules = rules
    this.closesAt = closesAt
  }

  settle(outgoing: Outgoing, result: PublishResult): void {
    this.#results.set(outgoing, result)
    if (result.ok || (result.kind === 'permanent' && !this.#rules.deadLettersHold)) return
    this.#failedKeys.set(orderingKey(outgoing.event), result)
  }

  /** Settles for them all that they were not tried. */
  hold(events: readonly Outgoing[], failure: PublishFailure): void {
    for (const outgoing of events) this.settle(outgoing, { ...failure, kind: 'held' })
  }

  /** Those that may still be sent. The others are settled: their topic or their aggregate is at fault. */
  admit(events: readonly Outgoing[]): Outgoing[] {
    return events.filter((outgoing) => {
      const failed = this.#failedKeys.get(orderingKey(outgoing.event))
      const refused = refuseTopic(outgoing.event.topic)
      if (failed) this.hold([outgoing], failed)
      else if (refused) this.settle(outgoing, refused)
      return !failed && !refused
    })
  }

  /** Usually one. An aggregate whose events go to several topics takes its turns, to keep its order. */
  rounds(): Outgoing[][] {
    const rounds: Outgoing[][] = []
    const last = new Map<string, { topic: string; round: number }>()
    for (const outgoing of this.#outgoing) {
      const key = orderingKey(outgoing.event)
      const { topic } = outgoing.event
      const before = last.get(key) ?? { topic, round: 0 }
      const round = before.round + (before.topic === topic ? 0 : 1)
      last.set(key, { topic, round })
      ;(rounds[round] ??= []).push(outgoing)
    }
    return rounds
  }

  results(): PublishResult[] {
    return this.#outgoing.map((outgoing) => this.#results.get(outgoing)!)
  }
}

function toOutgoing(event: OutboxEvent): Outgoing {
  const headers = messageHeaders(event)
  let bytes = Buffer.byteLength(event.payload) + Buffer.byteLength(event.aggregateId)
  for (const [name, value] of Object.entries(headers)) {
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value)
  }
  return { event, bytes, message: { key: event.aggregateId, value: event.payload, headers } }
}
