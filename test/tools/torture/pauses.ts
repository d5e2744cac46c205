// Topics that are paused and resumed while everything else happens, and what the oracle makes of it: no instance may begin
// a send to a paused topic later than promised. The time in which an instance could not reach the database does not count.
import { setTimeout as delay } from 'node:timers/promises'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { createOutbox } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { TOPICS } from './business.ts'
import type { Random } from './random.ts'

/** What docs/operations.md promises. */
export const PROMISE_MS = 15_000

/** Times are those of Date.now(), which all processes of a machine share. */
interface Span {
  readonly from: number
  readonly to: number
}

/** From when pause() had returned until resume() was called. */
export interface PauseSpan extends Span {
  readonly topic: string | null
}

/** When all instances, or the one with this process id, could not reach the database. */
export interface Disturbance extends Span {
  readonly pid?: number
}

/** A worker began to send events of these topics. */
export interface SendNote {
  readonly pid: number
  readonly at: number
  readonly topics: readonly string[]
}

export class Pausing {
  readonly spans: PauseSpan[] = []
  readonly #url: string
  readonly #random: Random

  constructor(url: string, random: Random) {
    this.#url = url
    this.#random = random
  }

  /** One pause after another until the time is up. In the end everything is resumed. */
  async run(ms: number): Promise<void> {
    const client = postgres(this.#url, { max: 1, fetch_types: false, backoff: () => 0.1 })
    const publisher = handlersPublisher({ handlers: {} })
    const operator = createOutbox({ db: drizzle(client), publisher, logger: false })
    const end = performance.now() + ms
    try {
      while (performance.now() < end) {
        await delay(this.#random.between(500, 3_000))
        const topic = this.#random.pick([[1, null], ...TOPICS.map((name) => [2, name] as const)])
        await insist(() => operator.pause(topic, { by: 'torture' }))
        const from = Date.now()
        await delay(Math.min(this.#drawMs(), Math.max(0, end - performance.now())))
        this.spans.push({ topic, from, to: Date.now() })
        await insist(() => operator.resume(topic))
      }
    } finally {
      await client.end({ timeout: 1 })
    }
  }

  /** Over before others have heard of it, or longer than the promise. */
  #drawMs(): number {
    return this.#random.pick([
      [1, this.#random.between(100, 5_000)],
      [1, this.#random.between(PROMISE_MS, 3 * PROMISE_MS)],
    ])
  }
}

/** Postgres may be away. */
async function insist(action: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await action()
      return
    } catch {
      await delay(100)
    }
  }
}

export interface PauseVerdict {
  readonly pauses: number
  /** Sends that began during a pause and too late for it. */
  readonly sentLate: number
  /** How long after the beginning of a pause the last send of its topic began, without the time of disturbances. */
  readonly obeyedAfterMs: number
}

export function judgePauses(
  spans: readonly PauseSpan[],
  disturbances: readonly Disturbance[],
  sends: readonly SendNote[],
): PauseVerdict {
  const delays = spans.flatMap(({ topic, from, to }) =>
    sends
      .filter(
        ({ at, topics }) => at > from && at < to && (topic === null || topics.includes(topic)),
      )
      .map(({ at, pid }) => undisturbedMs({ from, to: at }, ofProcess(disturbances, pid))),
  )
  return {
    pauses: spans.length,
    sentLate: delays.filter((ms) => ms > PROMISE_MS).length,
    obeyedAfterMs: delays.reduce((most, ms) => Math.max(most, ms), 0),
  }
}

const ofProcess = (disturbances: readonly Disturbance[], own: number) =>
  disturbances.filter(({ pid = own }) => pid === own)

function undisturbedMs({ from, to }: Span, disturbances: readonly Span[]): number {
  let [left, reached] = [to - from, from]
  for (const one of disturbances.toSorted((a, b) => a.from - b.from)) {
    const begins = Math.max(one.from, reached)
    const ends = Math.min(one.to, to)
    if (ends <= begins) continue
    left -= ends - begins
    reached = ends
  }
  return left
}
