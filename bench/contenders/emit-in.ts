// The library where the application begins its transactions itself: the event is saved with emitIn(), and the library
// has to find out by itself that the transaction committed.
import { createOutbox } from '../../dist/index.js'
import { kafkaPublisher } from '../../dist/publishers/kafka/kafka-publisher.js'
import { toEvent } from '../aftercommit.ts'
import { openShop } from '../business.ts'
import type { MakeContender } from '../contender.ts'

export const make: MakeContender = async (stage) => {
  const { kafka, topic } = stage
  const shop = await openShop(stage)
  const outbox = createOutbox({ db: shop.db, publisher: kafkaPublisher({ kafka }), topic })
  await outbox.migrate()

  return {
    start: () => outbox.start(),
    async unit(events, committed) {
      await shop.db.transaction(async (tx) => {
        await shop.placeOrder(tx, events)
        await outbox.emitIn(tx, events.map(toEvent))
      })
      committed()
    },
    async stop() {
      await outbox.stop()
      await shop.close()
    },
  }
}
