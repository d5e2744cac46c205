// From COMMIT to the record: the unit of work hands its events over here. Each event goes to the pipeline of its
// topic's publisher (pipeline.ts), on the immediate path (immediate.ts) or, if that gives it back, on the fallback
// (fallback.ts). Both paths share the send (send.ts) and the record (record.ts). gate.ts decides whether an event may
// go now, and order.ts what it may follow.
import { AsyncResource } from 'node:async_hooks'
import { type EventRef, type PreparedEvent, refOf } from '../event/event.ts'
import { destinationByTopic } from '../publishers/router.ts'
import { groupBy } from '../runtime/group-by.ts'
import type { SavedEvent } from '../store/outbox/outbox-store.ts'
import type { BirthLease, NextStep } from '../unit-of-work/hand-over.ts'
import type { Unreachable } from './circuits.ts'
import { Pipeline, type PipelineParts } from './pipeline.ts'

export class Delivery implements NextStep {
  readonly #parts: PipelineParts
  readonly #pipelines: readonly Pipeline[]
  readonly #pipelineOf: (topic: string) => Pipeline
  // Work after the hand-over belongs to no request. Without its own context, a handler would run inside the unit of
  // work that happened to commit last.
  readonly #context = new AsyncResource('aftercommit')
  #draining: ReadonlySet<Pipeline> = new Set()

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
      const { lifecycle } = this.#parts
      if (lifecycle.hasListeners('event:saved')) {
        for (const { event } of saved) lifecycle.tell('event:saved', { event: refOf(event) })
      }
      if (!birth) return this.leave(saved.map(({ event }) => event))
      for (const [pipeline, own] of this.#divide(saved, ({ event }) => event)) {
        pipeline.immediate.accept(own, birth)
      }
    })
  }

  leave(events: readonly PreparedEvent[]): void {
    this.#context.runInAsyncScope(() => {
      for (const [pipeline, own] of this.#divide(events, (event) => event)) {
        if (pipeline.gate.reachesAny(own)) pipeline.look()
      }
    })
  }

  /** Runs one round of each fallback, in parallel. Returns how many events they claimed. */
  async pollOnce(): Promise<number> {
    const rounds = await this.#context.runInAsyncScope(() =>
      Promise.all(
        this.#pipelines.map(async ({ fallback }) => {
          try {
            return await fallback.runOnce()
          } finally {
            await fallback.idle()
          }
        }),
      ),
    )
    return rounds.reduce((sum, { claimed }) => sum + claimed, 0)
  }

  async renewOnce(): Promise<void> {
    await Promise.all(this.#pipelines.map((pipeline) => pipeline.renewOnce()))
  }

  unreachable(): Unreachable[] {
    return this.#pipelines.flatMap(({ circuits }) => circuits.unreachable())
  }

  start(): void {
    for (const pipeline of this.#pipelines) pipeline.start()
  }

  /** Accepts nothing more. Resolves when everything under way is recorded. */
  async drain(): Promise<void> {
    const draining = new Set(this.#pipelines)
    this.#draining = draining
    await Promise.all(
      this.#pipelines.map(async (pipeline) => {
        await pipeline.drain()
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

  #divide<Item>(
    items: readonly Item[],
    eventOf: (item: Item) => EventRef,
  ): Map<Pipeline, readonly Item[]> {
    if (this.#pipelines.length === 1) return new Map([[this.#pipelines[0]!, items]])
    return groupBy(items, (item) => this.#pipelineOf(eventOf(item).topic))
  }
}
