// The library itself, as it is built for whoever installs it, by its defaults, with either Kafka client. Tuned: an event
// is deleted when it is published, and not kept for a week.
import { createOutbox, type Publisher } from '../dist/index.js'
import { openShop } from './business.ts'
import type { BenchEvent, Contender, Stage } from './contender.ts'

const TUNED = { retention: 0 }

export async function makeAftercommit(stage: Stage, publisher: Publisher): Promise<Contender> {
  const { topic, tuned } = stage
  const shop = await openShop(stage)
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
