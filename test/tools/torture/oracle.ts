// The verdict: what the journal says was committed, against what the topics hold. The workers' own numbers are
// not asked; what the table says is compared at the end (tables.ts).
import postgres from 'postgres'
import { readTopic, type TopicMessage } from '../../support/servers/topic-reader.ts'
import { TOPICS, topicOf } from './business.ts'
import { countOutOfOrder, type Placed } from './order.ts'

export interface JournalEntry extends Omit<Placed, 'position'> {
  readonly eventId: string
  readonly payload: string
  readonly note: string
  /** When a scheduled event is due at the earliest; null: it is not scheduled. */
  readonly dueMs: number | null
}

export interface Verdict {
  readonly committed: number
  /** Committed events that arrived, each counted once. */
  readonly delivered: number
  /** Neither arrived nor cancelled. */
  readonly lost: number
  /** Arrived without having been committed. */
  readonly phantom: number
  /** Arrivals after the first. */
  readonly duplicates: number
  /** Arrived for the first time before another that it had to follow. */
  readonly outOfOrder: number
  /** Arrived with another payload, key, topic or header than was emitted. */
  readonly corrupted: number
}

export interface Arrival extends Pick<TopicMessage, 'key' | 'value' | 'headers'> {
  readonly topic: string
}

export async function readJournal(url: string): Promise<JournalEntry[]> {
  const client = postgres(url, { max: 1 })
  try {
    return await client<JournalEntry[]>`
      select event_id as "eventId", account, n::int, payload, note, locked,
        xid::text::float8 as xid, snapshot::text, due_ms as "dueMs" from journal`
  } finally {
    await client.end()
  }
}

export async function readArrivals(brokers: string[]): Promise<Arrival[]> {
  const arrivals = await Promise.all(
    TOPICS.map(async (topic) => {
      const reader = await readTopic(brokers, topic)
      const messages = await reader.readToEnd()
      await reader.stop()
      return messages.map((message) => ({ ...message, topic }))
    }),
  )
  return arrivals.flat()
}

export const idOf = ({ headers }: Arrival) => headers['event-id'] ?? ''

/** `arrivals` in the order of their partitions. Scheduled events have no order to keep. */
export function judge(
  journal: readonly JournalEntry[],
  arrivals: readonly Arrival[],
  cancelled: ReadonlySet<string> = new Set(),
): Verdict {
  const entries = new Map(journal.map((entry) => [entry.eventId, entry]))
  const firsts = new Map<string, Placed & JournalEntry>()
  let [phantom, duplicates, corrupted] = [0, 0, 0]
  for (const [position, arrival] of arrivals.entries()) {
    const eventId = idOf(arrival)
    const entry = entries.get(eventId)
    if (!entry) {
      phantom += 1
      continue
    }
    if (!isFaithful(arrival, entry)) corrupted += 1
    if (firsts.has(eventId)) duplicates += 1
    else firsts.set(eventId, { ...entry, position })
  }
  return {
    committed: journal.length,
    delivered: firsts.size,
    lost: journal.filter(({ eventId }) => !firsts.has(eventId) && !cancelled.has(eventId)).length,
    phantom,
    duplicates,
    outOfOrder: countOutOfOrder([...firsts.values()].filter(({ dueMs }) => dueMs === null)),
    corrupted,
  }
}

function isFaithful({ key, value, headers, topic }: Arrival, entry: JournalEntry): boolean {
  const { account, n, payload, note } = entry
  return (
    key === account &&
    value === payload &&
    topic === topicOf(account) &&
    headers['event-type'] === (n % 2 ? 'Debited' : 'Credited') &&
    headers['aggregate-type'] === 'account' &&
    headers['aggregate-id'] === account &&
    headers['correlation-id'] === note &&
    headers['note'] === note
  )
}
