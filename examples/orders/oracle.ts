// The verdict, from two sources that the outbox has no hand in: what the orders table says was committed,
// and what a reader found at the destination. The outbox table and the live counters are not asked.
import postgres from 'postgres'

/** One message as it was found at the destination, in order of arrival within its order. */
export interface Delivery {
  readonly eventId: string
  readonly orderId: string
}

/** By order, the ids of its events in the order in which they were emitted. */
export type Committed = ReadonlyMap<string, readonly string[]>

export interface Verdict {
  readonly committed: number
  /** Committed events that arrived, each counted once. */
  readonly delivered: number
  readonly lost: number
  /** Arrived without having been committed. */
  readonly phantoms: number
  /** Arrived for the first time after a later event of the same order. */
  readonly outOfOrder: number
  /** Arrivals after the first. At-least-once allows them; consumers dedupe on the event id. */
  readonly duplicates: number
}

export async function readCommitted(databaseUrl: string): Promise<Committed> {
  const client = postgres(databaseUrl, { max: 1 })
  try {
    const rows = await client<{ id: number; event_ids: string[] }[]>`
      select id, event_ids from orders`
    return new Map(rows.map((row) => [String(row.id), row.event_ids]))
  } finally {
    await client.end()
  }
}

export function judge(committed: Committed, deliveries: readonly Delivery[]): Verdict {
  const expected = new Set([...committed.values()].flat())
  const seen = new Set<string>()
  const furthest = new Map<string, number>()
  let outOfOrder = 0
  for (const { eventId, orderId } of deliveries) {
    if (seen.has(eventId)) continue
    seen.add(eventId)
    const place = committed.get(orderId)?.indexOf(eventId) ?? -1
    const before = furthest.get(orderId) ?? -1
    if (place !== -1 && place < before) outOfOrder += 1
    furthest.set(orderId, Math.max(place, before))
  }
  const delivered = [...seen].filter((id) => expected.has(id)).length
  return {
    committed: expected.size,
    delivered,
    lost: expected.size - delivered,
    phantoms: seen.size - delivered,
    outOfOrder,
    duplicates: deliveries.length - seen.size,
  }
}
