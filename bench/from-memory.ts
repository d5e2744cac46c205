// The limit on the other side: the same messages from memory, as fast as a Kafka client sends them in batches.
import type { BenchEvent, Contender, Sender } from './contender.ts'

const BATCH = 500
const UNDER_WAY = 4

export async function makeFromMemory(sender: Sender): Promise<Contender> {
  const left: BenchEvent[] = []
  let sending: Promise<unknown> = Promise.resolve()

  async function sendLeft() {
    while (left.length > 0) await sender.send(left.splice(0, BATCH))
  }

  return {
    async start() {
      await sender.connect()
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
      await sender.disconnect()
    },
  }
}
