// From COMMIT to the record: the unit of work hands its events over here. Each event goes to the pipeline of its
// topic's publisher (pipeline.ts), on the immediate path (immediate.ts) or, if that gives it back, on the fallback
// (fallback.ts). Both paths share the send (send.ts) and the record (record.ts). gate.ts decides whether an event may
// go now, and order.ts what it may follow.
import { AsyncResource } from 'node:async_hooks'
import { performance } from 'node:perf_hooks'
import type { EventRef, LaneRef, PreparedEvent } from '../event/event.ts'
import { destinationByTopic } from '../publishers/router.ts'
import { groupBy } from '../runtime/group-by.ts'
import { raceTimeout } from '../runtime/race-timeout.ts'
import type { SavedEvent } from '../store/outbox/outbox-store.ts'
import type { PublisherActivity } from '../telemetry/telemetry.ts'
import { type BirthLease, type NextStep, tellSaved } from '../unit-of-work/hand-over.ts'
import type { Unreachable } from './circuits.ts'
import { Flush, type FlushResult, type LeftReason } from './flush.ts'
import { Pipeline, type PipelineParts } from './pipeline.ts'
import { ProbeChances } from './probe-chances.ts'
import { Tally } from './tally.ts'

/** What a drain() has sent. */
export interface DrainResult {
  readonly delivered: number
  /** Refused by a handler or the broker; the outbox tries them again later. */
  readonly failed: number
  /** Became dead letters. */
  readonly dead: number
  /** Whether the time was over before everything was sent that could be. */
  readonly timedOut: boolean
}

/** Whether stop() has ended a call that sends. */
type IsEnded = () => boolean

/** The caller waits for the result, so the process must not end meanwhile. */
const KEEP_ALIVE = { keepAlive: true }

export class Delivery implements NextStep {
  readonly sends = true
  readonly #parts: PipelineParts
  readonly #pipelines: readonly Pipeline[]
  readonly #pipelineOf: (topic: string) => Pipeline
  // Work after the hand-over belongs to no request. Without its own context, a handler would run inside the unit of
  // work that happened to commit last.
  readonly #context = new AsyncResource('aftercommit')
  #draining: ReadonlySet<Pipeline> = new Set()
  /** Calls that send, such as a drain of the application, with or without start(). */
  readonly #calls = new Set<Promise<unknown>>()
  /** How often stop() has ended them. */
  #ends = 0

  constructor(parts: PipelineParts) {
    this.#parts = parts
    this.#pipelines = parts.options.destinations.map((one) => new Pipeline(one, parts))
    this.#pipelineOf = destinationByTopic(this.#pipelines)
  }

  takesAny(events: readonly PreparedEvent[]): boolean {
    const parts = this.#divide(events, (event) => event)
    return [...parts].some(([{ gate }, own]) => gate.takes(own))
  }

  handOver(saved: readonly SavedEvent[], birth: BirthLease | null): void {
    this.#context.runInAsyncScope(() => {
      tellSaved(this.#parts.lifecycle, saved)
      const due = saved.filter(({ dueInMs }) => dueInMs === undefined)
      if (due.length < saved.length) this.expect(firstDueInMs(saved))
      if (!birth) return this.leave(due.map(({ event }) => event))
      for (const [pipeline, own] of this.#divide(due, ({ event }) => event)) {
        pipeline.immediate.accept(own, birth)
      }
    })
  }

  // All of them, because any fallback may make the event due, and its topic decides which one sends it.
  expect(inMs: number): void {
    for (const pipeline of this.#pipelines) pipeline.lookIn(inMs)
  }

  leave(events: readonly LaneRef[]): void {
    for (const event of events) this.#parts.own.note(event)
    this.#context.runInAsyncScope(() => {
      for (const [pipeline, own] of this.#divide(events, (event) => event)) {
        if (pipeline.gate.reachesAny(own)) pipeline.look()
      }
    })
  }

  /** Runs a call that sends. Its publishers stay connected for it, and drain() ends it. */
  async during<T>(call: (isEnded: IsEnded) => Promise<T>): Promise<T> {
    const ends = this.#ends
    const uses = this.#pipelines.map((pipeline) => [pipeline, pipeline.beginCall()] as const)
    const running = call(() => this.#ends > ends)
    this.#calls.add(running)
    try {
      return await running
    } finally {
      this.#calls.delete(running)
      for (const [pipeline, use] of uses) void pipeline.endCall(use)
    }
  }

  /** Runs one round of each fallback, in parallel. Returns how many events they claimed. */
  async pollOnce(isOver: IsEnded): Promise<number> {
    const rounds = await this.#context.runInAsyncScope(() =>
      Promise.all(
        this.#pipelines.map(async ({ fallback }) => {
          try {
            return await fallback.runOnce(() => !isOver(), { isOver })
          } finally {
            await fallback.lateOver()
          }
        }),
      ),
    )
    return rounds.reduce((sum, { claimed }) => sum + claimed, 0)
  }

  /** Runs rounds of each fallback, in parallel, until nothing more can be sent now or the time is over. */
  async sendDue(until: number, isEnded: IsEnded): Promise<DrainResult> {
    const tally = new Tally()
    const isOver = () => isEnded() || performance.now() >= until
    const parts = this.#pipelines.map(
      (one) => [one, { isOver, tally }, new ProbeChances(one.circuits)] as const,
    )
    const send = async () => {
      let before: number
      do {
        before = tally.total
        await Promise.all(parts.map(([pipeline, ...given]) => pipeline.sendDue(...given)))
        // What was sent may be more than a pipeline waited for, and a handler may have emitted for one that was done.
      } while (tally.total > before && !isOver())
    }
    const sending = this.#context.runInAsyncScope(send)
    const outcome = await raceTimeout(sending, until - performance.now(), KEEP_ALIVE)
    const { delivered, failed, dead } = tally
    return { delivered, failed, dead, timedOut: outcome === 'late' || isOver() }
  }

  /** Sends what this process committed, until all of it has an outcome or the time is over. */
  async flush(until: number, isEnded: IsEnded): Promise<FlushResult> {
    const flush = this.#newFlush()
    const isOver = () => isEnded() || performance.now() >= until
    await this.#context.runInAsyncScope(() => flush.run(until, isOver))
    return flush.result()
  }

  /** The result of a flush() that sends nothing. */
  unsent(reason: LeftReason): FlushResult {
    return this.#newFlush().result(reason)
  }

  /** Whether any event of this process is queued, under way or not recorded yet. */
  get holdsAny(): boolean {
    return this.#pipelines.some(({ leases }) => leases.size > 0)
  }

  async renewOnce(): Promise<void> {
    await Promise.all(this.#pipelines.map((pipeline) => pipeline.renewOnce()))
  }

  unreachable(): Unreachable[] {
    return this.#pipelines.flatMap(({ circuits }) => circuits.unreachable())
  }

  activity(): PublisherActivity[] {
    return this.#pipelines.map(({ activity }) => activity)
  }

  start(): void {
    for (const pipeline of this.#pipelines) pipeline.start()
  }

  /** Accepts nothing more, and ends calls that send. Resolves when everything under way is recorded. */
  async drain(): Promise<void> {
    this.#ends += 1
    const callsOver = Promise.allSettled(this.#calls)
    const draining = new Set(this.#pipelines)
    this.#draining = draining
    await Promise.all(
      this.#pipelines.map(async (pipeline) => {
        await pipeline.drain(callsOver)
        draining.delete(pipeline)
      }),
    )
    await this.#parts.recorder.idle()
  }

  /** The names of the publishers that drain() waits for. */
  get draining(): string[] {
    return [...this.#draining].map(({ name }) => name)
  }

  /** Gives back events that have not been sent yet. */
  async release(): Promise<void> {
    await Promise.all(this.#pipelines.map((pipeline) => pipeline.release()))
  }

  async close(): Promise<void> {
    await Promise.all(this.#pipelines.map((pipeline) => pipeline.close()))
  }

  get descriptions() {
    return this.#pipelines.map(({ description }) => description)
  }

  #newFlush(): Flush {
    const [pipelines, pipelineOf] = [this.#pipelines, this.#pipelineOf]
    return new Flush({ ...this.#parts, pipelines, pipelineOf })
  }

  #divide<Item>(
    items: readonly Item[],
    eventOf: (item: Item) => EventRef,
  ): Map<Pipeline, readonly Item[]> {
    if (this.#pipelines.length === 1) return new Map([[this.#pipelines[0]!, items]])
    return groupBy(items, (item) => this.#pipelineOf(eventOf(item).topic))
  }
}

function firstDueInMs(saved: readonly SavedEvent[]): number {
  return saved.reduce(
    (first, { dueInMs = Number.POSITIVE_INFINITY }) => Math.min(first, dueInMs),
    Number.POSITIVE_INFINITY,
  )
}
