// What a unit of work costs its caller: three kinds by turns in one process, so that all of them meet the same
// machine. They are spaced, so that none pays for what another one left running in the background.
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { randomInt, randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { createOutbox } from '../dist/index.js'
import { kafkaPublisher } from '../dist/publishers/kafka/kafka-publisher.js'
import { openShop } from './business.ts'
import type { BenchEvent, Stage } from './contender.ts'
import type { OverheadResult } from './job.ts'
import { eventMaker } from './load.ts'
import { median } from './spread.ts'

const PAUSE_MS = 8
/** Of each kind, without a pause. */
const WARM_UP_UNITS = 2_000

export async function runOverhead(
  stage: Stage,
  units: number,
  ready: () => Promise<void>,
): Promise<OverheadResult> {
  const shop = await openShop({ ...stage, poolSize: 4 })
  const publisher = kafkaPublisher({ kafka: stage.kafka })
  const outbox = createOutbox({ db: shop.db, publisher, topic: stage.topic })
  await outbox.migrate()
  await outbox.start()
  const makeEvents = eventMaker({ eventsPerUnit: 1, payloadBytes: 1_000 }, 0)

  const kinds = {
    noneMs: (events: BenchEvent[]) =>
      shop.db.transaction(async (tx) => {
        await shop.placeOrder(tx, events)
      }),
    handWrittenMs: (events: BenchEvent[]) =>
      shop.db.transaction(async (tx) => {
        await shop.placeOrder(tx, events)
        const [event] = events
        const headers = JSON.stringify({ 'bench-id': event!.id })
        // Held by somebody who never comes: it stays out of the way of the outbox.
        await tx.execute(sql`insert into outbox (id, lane, aggregate_type, aggregate_id, event_type, topic,
          payload, headers, max_attempts, available_at, lease_token, occurred_at)
          values (${randomUUID()}, ${randomInt(2 ** 47)}, 'order', ${event!.key}, 'OrderPlaced', ${stage.topic},
            ${JSON.stringify(event!.payload)}::text::json, ${headers}::text::json, 10,
            now() + interval '1 day', ${randomUUID()}, now())`)
      }),
    withOutboxMs: (events: BenchEvent[]) =>
      outbox.withOutbox(async (tx, emit) => {
        await shop.placeOrder(tx, events)
        const { id, key, payload } = events[0]!
        emit({
          type: 'OrderPlaced',
          aggregateType: 'order',
          aggregateId: key,
          headers: { 'bench-id': id },
          payload,
        })
      }),
  }
  const names = Object.keys(kinds) as (keyof typeof kinds)[]
  const times = {
    noneMs: [] as number[],
    handWrittenMs: [] as number[],
    withOutboxMs: [] as number[],
  }

  for (let n = 0; n < WARM_UP_UNITS + units; n += 1) {
    if (n === WARM_UP_UNITS) await ready()
    for (const [turn] of names.entries()) {
      const name = names[(n + turn) % names.length]!
      const events = makeEvents(n * names.length + turn)
      if (n >= WARM_UP_UNITS) await delay(PAUSE_MS)
      const begunAt = performance.now()
      await kinds[name](events)
      if (n >= WARM_UP_UNITS) times[name].push(performance.now() - begunAt)
    }
  }
  await outbox.stop()
  await shop.close()
  return {
    noneMs: median(times.noneMs),
    handWrittenMs: median(times.handWrittenMs),
    withOutboxMs: median(times.withOutboxMs),
  }
}
