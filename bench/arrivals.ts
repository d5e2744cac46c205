// What stands in a topic after a turn: whatever was lost or came twice is said beside the figure.
import { readTopic } from '../test/support/servers/topic-reader.ts'

export interface Arrivals {
  readonly delivered: number
  readonly lost: number
  readonly duplicates: number
}

export async function countArrivals(
  brokers: Parameters<typeof readTopic>[0],
  topic: string,
  expected: number,
): Promise<Arrivals> {
  const reader = await readTopic(brokers, topic)
  try {
    const messages = await reader.readToEnd()
    const delivered = new Set(messages.map(({ headers }) => headers['bench-id'])).size
    const lost = Math.max(0, expected - delivered)
    return { delivered, lost, duplicates: messages.length - delivered }
  } finally {
    await reader.stop()
  }
}
