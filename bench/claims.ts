// How long a round of our fallback takes that claims 100 events, sends them to nowhere and records them: by turns in a
// table with something in the way and in an empty one, so that both meet the same machine.
import { performance } from 'node:perf_hooks'
import { createOutbox, type Publisher } from '../dist/index.js'
import { toEvent } from './aftercommit.ts'
import { openShop } from './business.ts'
import type { Stage } from './contender.ts'
import type { Claims, ClaimsResult } from './job.ts'
import { eventMaker } from './load.ts'
import { AWAY } from './scenes.ts'
import { median } from './spread.ts'

const CLAIM = 100
/** There is always more than one claim takes. */
const STOCK = 10 * CLAIM
const WARM_UP_CLAIMS = 30
/** Claims that take seconds are not repeated for hours. */
const WARM_UP_LIMIT_MS = 20_000
const LIMIT_MS = 60_000
const LEAST_CLAIMS = 3
const PATIENCE_MS = 120_000

/** Claims in one table. */
interface Fallback {
  /** Returns how long it took, in milliseconds. */
  claim(): Promise<number>
  close(): Promise<void>
}

export async function runClaims(
  stage: Stage,
  { scene, claims, emptyUrl }: Omit<Claims, 'kind'>,
  ready: () => Promise<void>,
): Promise<ClaimsResult> {
  const crowded = await openFallback(stage, scene === 'topic out of reach')
  const empty = emptyUrl === null ? null : await openFallback({ ...stage, databaseUrl: emptyUrl })
  await ready()
  const firstMs = await crowded.claim()
  await byTurns(WARM_UP_CLAIMS, WARM_UP_LIMIT_MS)
  const [times, emptyTimes] = await byTurns(claims, LIMIT_MS)
  await crowded.close()
  await empty?.close()
  const claimMs = median(times)
  return { claimMs, firstMs, ratio: empty ? claimMs / median(emptyTimes) : 1 }

  async function byTurns(most: number, limitMs: number): Promise<[number[], number[]]> {
    const found: [number[], number[]] = [[], []]
    const until = performance.now() + limitMs
    for (let n = 0; n < most && (n < LEAST_CLAIMS || performance.now() < until); n += 1) {
      found[0].push(await crowded.claim())
      if (empty) found[1].push(await empty.claim())
    }
    return found
  }
}

async function openFallback(stage: Stage, hasTopicAway = false): Promise<Fallback> {
  const shop = await openShop(stage)
  const sink = { sent: 0, failed: 0 }
  const outbox = createOutbox({
    db: shop.db,
    publisher: publisherTo(sink),
    topic: stage.topic,
    immediate: false,
    poller: false,
    batchSize: CLAIM,
    // So long that a slow claim is measured, and not given up.
    threshold: PATIENCE_MS,
    logger: false,
  })
  await outbox.migrate()
  // That a topic is out of reach is only known once it was tried.
  if (hasTopicAway) while (sink.failed === 0) await outbox.pollOnce()

  let saved = 0
  async function refill() {
    const missing = STOCK + sink.sent - saved
    const makeEvents = eventMaker({ eventsPerUnit: 1, payloadBytes: 1_000 }, saved)
    const events = Array.from({ length: missing }, (_, n) => toEvent(makeEvents(n)[0]!))
    await outbox.withOutbox((_, emit) => emit(events))
    saved += missing
  }

  return {
    async claim() {
      await refill()
      const enough = sink.sent + CLAIM
      const begunAt = performance.now()
      // Usually one round; one that takes fewer is not the end of it.
      while (sink.sent < enough) {
        await outbox.pollOnce()
        if (performance.now() < begunAt + PATIENCE_MS) continue
        throw new Error(`${enough - sink.sent} of ${CLAIM} events could not be claimed`)
      }
      return performance.now() - begunAt
    },
    async close() {
      await outbox.stop()
      await shop.close()
    },
  }
}

/** Returns at once, and reaches every topic but one. */
function publisherTo(sink: { sent: number; failed: number }): Publisher {
  const error = new Error('there is no such topic')
  return {
    name: 'memory',
    orderScope: 'topic',
    async publish(events) {
      return events.map(({ topic, aggregateId: key }) => {
        const isAway = topic === AWAY
        sink[isAway ? 'failed' : 'sent'] += 1
        if (isAway) return { ok: false, kind: 'transient', error, blames: 'topic' }
        return { ok: true, topic, key, partition: null, offset: null }
      })
    },
  }
}
