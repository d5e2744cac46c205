// A publisher of one's own, as docs/guides/publishers.md describes it: each event is a POST.
import type { OutboxEvent, Publisher, PublishResult } from 'aftercommit'

export function webhook(url: string): Publisher {
  async function send({ id, type, topic, aggregateId: key, payload }: OutboxEvent) {
    const headers = { 'content-type': 'application/json', 'event-id': id, 'event-type': type }
    try {
      const { ok, status } = await fetch(url, { method: 'POST', body: payload, headers })
      if (ok) return { ok, topic, key, partition: null, offset: null } satisfies PublishResult
      // 4xx: this event will never be taken. Anything else: nothing can be sent now.
      const kind = status < 500 ? 'permanent' : 'transient'
      return { ok: false, kind, error: new Error(`the webhook returned ${status}`) } as const
    } catch (error) {
      return { ok: false, kind: 'transient', error: error as Error } as const
    }
  }

  return {
    name: 'webhook',
    async publish(events, { deadLettersHold = false } = {}) {
      const results: PublishResult[] = []
      const failed = new Map<number, Error>()
      for (const event of events) {
        const earlier = failed.get(event.lane)
        const result: PublishResult = earlier
          ? { ok: false, kind: 'held', error: earlier }
          : await send(event)
        results.push(result)
        if (result.ok || (result.kind === 'permanent' && !deadLettersHold)) continue
        failed.set(event.lane, result.error)
      }
      return results
    },
  }
}
