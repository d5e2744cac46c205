// Units of work under way: in lines that go on as soon as they can, or at a pace that waits for nobody.
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { Acks } from './acks.ts'
import type { BenchEvent, Contender } from './contender.ts'
import type { Load, LoadResult, Usage } from './job.ts'
import { spreadOf } from './spread.ts'

const PATIENCE_MS = 30_000

/** A load with its number of units, and the number of its first event. */
export interface Portion extends Omit<Load, 'seconds' | 'warmUp'> {
  readonly units: number
  readonly firstId: number
}

export async function runLoad(
  contender: Contender,
  acks: Acks,
  load: Portion,
  sends: boolean,
): Promise<Omit<LoadResult, keyof Usage | 'emitted'>> {
  const { firstId } = load
  const committedAt: number[] = []
  const unitMs: number[] = []
  const makeEvents = eventMaker(load, firstId)
  const startedAt = performance.now()

  async function runUnit(n: number) {
    const begunAt = performance.now()
    await contender.unit(makeEvents(n), () => {
      committedAt[n] = performance.now()
    })
    unitMs.push(performance.now() - begunAt)
  }

  await (load.perSecond === undefined ? inLines(load, runUnit) : atPace(load, runUnit))
  const events = load.units * load.eventsPerUnit
  if (sends)
    await within(acks.reach(firstId + events), () => `${acks.count} of ${firstId + events} acks`)
  const endedAt = sends ? acks.lastAt : Math.max(...committedAt.slice(-1_000))
  const seconds = (endedAt - startedAt) / 1_000
  const latencies = sends
    ? Array.from({ length: events }, (_, n) => {
        return acks.timeOf(String(firstId + n))! - committedAt[Math.floor(n / load.eventsPerUnit)]!
      })
    : []
  return {
    committed: events,
    seconds,
    perSecond: events / seconds,
    latencyMs: spreadOf(latencies),
    unitMs: spreadOf(unitMs),
  }
}

export function eventMaker(
  { eventsPerUnit, payloadBytes, keys }: Pick<Load, 'eventsPerUnit' | 'payloadBytes' | 'keys'>,
  firstId: number,
): (unit: number) => BenchEvent[] {
  const text = 'x'.repeat(payloadBytes)
  return (unit) =>
    Array.from({ length: eventsPerUnit }, (_, n) => {
      const id = String(firstId + unit * eventsPerUnit + n)
      return {
        id,
        key: `order-${keys === undefined ? firstId + unit : unit % keys}`,
        payload: { id, text },
      }
    })
}

async function inLines({ units, concurrency }: Portion, runUnit: (n: number) => Promise<void>) {
  let next = 0
  const line = async () => {
    while (next < units) await runUnit(next++)
  }
  await Promise.all(Array.from({ length: concurrency }, line))
}

async function atPace({ units, perSecond }: Portion, runUnit: (n: number) => Promise<void>) {
  const startedAt = performance.now()
  const running: Promise<void>[] = []
  for (let n = 0; n < units; n += 1) {
    const waitMs = startedAt + (n * 1_000) / perSecond! - performance.now()
    if (waitMs > 0) await delay(waitMs)
    running.push(runUnit(n))
  }
  await Promise.all(running)
}

async function within(promise: Promise<void>, describe: () => string): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`gave up waiting at ${describe()}`)), PATIENCE_MS)
  })
  await Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
