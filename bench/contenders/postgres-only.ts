// The limit on one side: the business alone, with no outbox and nothing sent.
import { openShop } from '../business.ts'
import type { MakeContender } from '../contender.ts'

export const make: MakeContender = async (stage) => {
  const shop = await openShop(stage)
  return {
    start: async () => {},
    async unit(events, committed) {
      await shop.db.transaction(async (tx) => {
        await shop.placeOrder(tx, events)
      })
      committed()
    },
    stop: () => shop.close(),
  }
}
