// What stands in a topic after a turn: whatever was lost or came twice is said beside the figure.
import { readTopic } from '../test/support/servers/topic-reader.ts'

export interface Arrivals {
  readonly delivered: number
  readonly lost: number
  readonly duplicates: number
}

/** What arrived of the events with these numbers, if `expected` of them should have. */
export function arrivalsOf(ids: readonly number[], expected: number): Arrivals {
  const delivered = new Set(ids).size
  return {
    delivered,
    lost: Math.max(0, expected - delivered),
    duplicates: ids.length - delivered,
  }
}

/** The same for each of several turns, whose events are numbered on: a turn has those before its end. */
export function arrivalsByTurn(ids: readonly number[], ends: readonly number[]): Arrivals[] {
  return ends.map((end, turn) => {
    const from = ends[turn - 1] ?? 0
    return arrivalsOf(
      ids.filter((id) => id >= from && id < end),
      end - from,
    )
  })
}

/** The numbers of the events in a topic. */
export async function readIds(
  brokers: Parameters<typeof readTopic>[0],
  topic: string,
): Promise<number[]> {
  const reader = await readTopic(brokers, topic)
  try {
    const messages = await reader.readToEnd()
    return messages.map(({ headers }) => Number(headers['bench-id']))
  } finally {
    await reader.stop()
  }
}
