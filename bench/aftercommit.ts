// The library itself, as it is built for whoever installs it, by its defaults, with either Kafka client. Tuned: an event
// is deleted when it is published, and not kept for a week.
import {
  createOutbox,
  type OutboxOptions,
  type Publisher,
  type WatchedOutbox,
} from '../dist/index.js'
import { openShop } from './business.ts'
import type { BenchEvent, Contender, Stage } from './contender.ts'

const TUNED = { retention: 0 }

/** With whatever telemetry it should have. */
export interface Watched {
  readonly telemetry?: NonNullable<OutboxOptions['telemetry']>
  readonly watch?: (outbox: WatchedOutbox) => void
}

export async function makeAftercommit(
  stage: Stage,
  publisher: Publisher,
  { telemetry, watch }: Watched = {},
): Promise<Contender> {
  const { topic, tuned } = stage
  const shop = await openShop(stage)
  const outbox = createOutbox({
    db: shop.db,
    publisher,
    topic,
    ...(tuned && TUNED),
    ...(telemetry && { telemetry }),
  })
  watch?.(outbox)
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
