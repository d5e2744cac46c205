// A publisher that refuses an event now and then, as a handler may: the event rests, and what follows it in its
// account is held.
import type { OutboxEvent, Publisher, PublishFailure, PublishResult } from '../../../src/index.ts'

export function refuseSome(
  publisher: Publisher,
  isRefused: (event: OutboxEvent) => boolean,
): Publisher {
  return {
    ...publisher,
    async publish(events, rules) {
      const refused = new Map<OutboxEvent, PublishFailure>()
      const accounts = new Set<string>()
      for (const event of events) {
        if (accounts.has(event.aggregateId)) refused.set(event, HELD)
        else if (isRefused(event)) {
          refused.set(event, REFUSED)
          accounts.add(event.aggregateId)
        }
      }
      const rest = events.filter((event) => !refused.has(event))
      const results = rest.length > 0 ? await publisher.publish(rest, rules) : []
      const sent = new Map<OutboxEvent, PublishResult>(rest.map((event, n) => [event, results[n]!]))
      return events.map((event) => refused.get(event) ?? sent.get(event)!)
    },
  }
}

const REFUSED: PublishFailure = { ok: false, kind: 'rejected', error: new Error('not today') }
const HELD: PublishFailure = { ok: false, kind: 'held', error: new Error('behind a refused one') }
