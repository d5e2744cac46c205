// No outbox: commit, then send. What people do, and compare with; a crash in between loses the event.
import { openShop } from '../business.ts'
import { type MakeContender, messageOf } from '../contender.ts'

export const make: MakeContender = async (stage) => {
  const shop = await openShop(stage)
  const producer = stage.kafka.producer()
  return {
    start: () => producer.connect(),
    async unit(events, committed) {
      await shop.db.transaction(async (tx) => {
        await shop.placeOrder(tx, events)
      })
      committed()
      for (const event of events) {
        await producer.send({ topic: stage.topic, acks: -1, messages: [messageOf(event)] })
      }
    },
    async stop() {
      await producer.disconnect()
      await shop.close()
    },
  }
}
