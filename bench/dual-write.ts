// No outbox: commit, then send. What people do, and compare with; a crash in between loses the event.
import { openShop } from './business.ts'
import type { Contender, Sender, Stage } from './contender.ts'

export async function makeDualWrite(stage: Stage, sender: Sender): Promise<Contender> {
  const shop = await openShop(stage)
  return {
    start: () => sender.connect(),
    async unit(events, committed) {
      await shop.db.transaction(async (tx) => {
        await shop.placeOrder(tx, events)
      })
      committed()
      for (const event of events) await sender.send([event])
    },
    async stop() {
      await sender.disconnect()
      await shop.close()
    },
  }
}
