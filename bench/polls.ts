// How long a round of our fallback takes when there is nothing for it to do.
import { performance } from 'node:perf_hooks'
import { createOutbox } from '../dist/index.js'
import { kafkaPublisher } from '../dist/publishers/kafka/kafka-publisher.js'
import { openShop } from './business.ts'
import type { Stage } from './contender.ts'
import type { PollsResult } from './job.ts'
import { median } from './spread.ts'

const WARM_UP_ROUNDS = 50

export async function runPolls(
  stage: Stage,
  rounds: number,
  ready: () => Promise<void>,
): Promise<PollsResult> {
  const shop = await openShop(stage)
  const outbox = createOutbox({ db: shop.db, publisher: kafkaPublisher({ kafka: stage.kafka }) })
  await outbox.migrate()
  const times: number[] = []
  for (let n = 0; n < WARM_UP_ROUNDS + rounds; n += 1) {
    if (n === WARM_UP_ROUNDS) await ready()
    const begunAt = performance.now()
    await outbox.pollOnce()
    if (n >= WARM_UP_ROUNDS) times.push(performance.now() - begunAt)
  }
  await outbox.stop()
  await shop.close()
  return { pollMs: median(times) }
}
