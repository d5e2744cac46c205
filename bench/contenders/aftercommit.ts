// The library itself, as it is built for whoever installs it, by its defaults. Tuned: an event is
// deleted when it is published, and not kept for a week.
import { createOutbox } from '../../dist/index.js'
import { kafkaPublisher } from '../../dist/publishers/kafka/kafka-publisher.js'
import { openShop } from '../business.ts'
import type { BenchEvent, MakeContender } from '../contender.ts'

const TUNED = { retention: 0 }

export const make: MakeContender = async (stage) => {
  const { kafka, topic, tuned } = stage
  const shop = await openShop(stage)
  const publisher = kafkaPublisher({ kafka })
  const outbox = createOutbox({ db: shop.db, publisher, topic, ...(tuned && TUNED) })
  await outbox.migrate()

  return {
    start: () => outbox.start(),
    async unit(events, committed) {
      await outbox.withOutbox(async (tx, emit) => {
        await shop.placeOrder(tx, events)
        emit(events.map(toEvent))
      })
      committed()
    },
    async leaveBehind(events) {
      await outbox.withOutbox((_, emit) => emit(events.map(toEvent)))
    },
    async stop() {
      await outbox.stop()
      await shop.close()
    },
  }
}

export function toEvent({ id, key, payload }: BenchEvent) {
  return {
    type: 'OrderPlaced',
    aggregateType: 'order',
    aggregateId: key,
    headers: { 'bench-id': id },
    payload,
  }
}
