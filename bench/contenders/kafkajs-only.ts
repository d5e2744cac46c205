// The limit on the other side: the same messages from memory, as fast as kafkajs sends them in batches.
import { type BenchEvent, type MakeContender, messageOf } from '../contender.ts'

const BATCH = 500
const UNDER_WAY = 4

export const make: MakeContender = async ({ kafka, topic }) => {
  const producer = kafka.producer()
  const left: BenchEvent[] = []
  let sending: Promise<unknown> = Promise.resolve()

  async function sendLeft() {
    while (left.length > 0) {
      const messages = left.splice(0, BATCH).map(messageOf)
      await producer.sendBatch({ acks: -1, topicMessages: [{ topic, messages }] })
    }
  }

  return {
    async start() {
      await producer.connect()
      sending = Promise.all(Array.from({ length: UNDER_WAY }, sendLeft))
    },
    async unit(events, committed) {
      committed()
      left.push(...events)
      await sendLeft()
    },
    async leaveBehind(events) {
      left.push(...events)
    },
    async stop() {
      // A drain whose time is up has more to send. A send that is cut off would end the process.
      left.length = 0
      await sending
      await producer.disconnect()
    },
  }
}
