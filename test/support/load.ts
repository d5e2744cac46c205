// Units of work at a steady pace, for what happens to a cluster under load. Each writer has aggregates of its own, so it
// knows the order in which their events were committed, and commits through each of the outboxes in turn.
import { performance } from 'node:perf_hooks'
import type { Outbox } from '../../src/index.ts'
import { newEvent } from './doubles/sample-events.ts'
import { waitUntil } from './timing/wait-until.ts'

export type Load = {
  /** The payloads of each aggregate, 0, 1, 2 and so on, in the order of commit. */
  readonly committed: ReadonlyMap<string, readonly number[]>
  /** Resolves when that many more units of work have committed. */
  commits(units: number): Promise<void>
  /** Resolves when the last unit of work has ended; rejects if one has failed. */
  stop(): Promise<void>
}

const WRITERS = 3
const AGGREGATES_PER_WRITER = 8
const EVENTS_PER_UNIT = 2
/** So slow that three brokers and their clients keep up on two cores. */
const UNIT_MS = 60

export function startLoad(outboxes: readonly Pick<Outbox, 'withOutbox'>[], name: string): Load {
  const committed = new Map<string, number[]>()
  let units = 0
  const work = { goesOn: true }

  async function commitOne(aggregateId: string): Promise<void> {
    const before = committed.get(aggregateId) ?? []
    const numbers = Array.from({ length: EVENTS_PER_UNIT }, (_, n) => before.length + n)
    await outboxes[units % outboxes.length]!.withOutbox((_, emit) => {
      for (const payload of numbers) emit(newEvent({ aggregateId, payload }))
    })
    committed.set(aggregateId, [...before, ...numbers])
    units += 1
  }

  async function write(writer: number): Promise<void> {
    for (let n = 0; work.goesOn; n += 1) {
      const due = performance.now() + UNIT_MS
      await commitOne(`${name}-${writer}-${n % AGGREGATES_PER_WRITER}`)
      await waitUntil(() => performance.now() >= due, { message: 'the next unit is due' })
    }
  }

  const writers = Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)))
  // Reported by stop(); a test that fails earlier may never call it.
  writers.catch(() => {})
  return {
    committed,
    async commits(count) {
      const wanted = units + count
      await waitUntil(() => units >= wanted, { message: () => `${wanted} units, got ${units}` })
    },
    async stop() {
      work.goesOn = false
      await writers
    },
  }
}

type Arrived = { key: string | null; value: string | null }

/** The payloads of each aggregate in the order of arrival, without the copies that a lost ack may leave. */
export function firstArrivals<T extends Arrived>(
  messages: readonly T[],
  group: (message: T) => string = ({ key }) => key ?? '',
): Map<string, number[]> {
  const numbers = new Map<string, Set<number>>()
  for (const message of messages) {
    const name = group(message)
    numbers.set(name, (numbers.get(name) ?? new Set()).add(Number(message.value)))
  }
  return new Map([...numbers].map(([name, seen]) => [name, [...seen]]))
}
