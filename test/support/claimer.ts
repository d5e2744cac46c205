// Claims what can be claimed now, as the fallback does: from the topics that have something due, and from the lanes that
// earlier claims said to wait.
import type { OutboxEvent } from '../../src/index.ts'
import type { Lease, Store, TopicLimits } from '../../src/store/outbox/outbox-store.ts'

export interface ClaimNow extends Partial<TopicLimits> {
  readonly lease: Lease
  readonly limit?: number
}

export function newClaimer(store: () => Pick<Store<never>, 'claim' | 'dueTopics'>) {
  const lanes = new Set<number>()
  return async (request: ClaimNow): Promise<OutboxEvent[]> => {
    const { lease, limit = 100, onlyTopics = null, exceptTopics = [] } = request
    const due = (await store().dueTopics()).topics.filter((topic) => {
      return !exceptTopics.includes(topic) && (onlyTopics?.includes(topic) ?? true)
    })
    const sources = [{ topics: due }, { lanes: [...lanes], onlyTopics, exceptTopics }]
    const events: OutboxEvent[] = []
    for (const from of sources) {
      for (let isFull = true; isFull && events.length < limit; ) {
        const claimed = await store().claim({ lease, limit: limit - events.length, from })
        for (const lane of claimed.waitingLanes) lanes.add(lane)
        events.push(...claimed.events)
        isFull = claimed.isFull
      }
    }
    return events.toSorted((a, b) => a.seq - b.seq)
  }
}
