// The limit on the other side: the same messages from memory, as fast as kafkajs sends them in batches.
import { type BenchEvent, type MakeContender, messageOf } from '../contender.ts'

const BATCH = 500
const UNDER_WAY = 4

export const make: MakeContender = async ({ kafka, topic }) => {
  const producer = kafka.producer()
  const left: BenchEvent[] = []

  async function sendLeft() {
    while (left.length > 0) {
      const messages = left.splice(0, BATCH).map(messageOf)
      await producer.sendBatch({ acks: -1, topicMessages: [{ topic, messages }] })
    }
  }

  return {
    async start() {
      await producer.connect()
      for (let n = 0; n < UNDER_WAY; n += 1) void sendLeft()
    },
    async unit(events, committed) {
      committed()
      left.push(...events)
      await sendLeft()
    },
    async leaveBehind(events) {
      left.push(...events)
    },
    stop: () => producer.disconnect(),
  }
}
