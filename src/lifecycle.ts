// Typed lifecycle events, which report to the application what happens in the background.
// They are signals only: a listener that throws, or an async one that rejects, changes nothing on the path.
import { performance } from 'node:perf_hooks'
import { EventEmitter } from 'eventemitter3'
import { suggest } from './checks/checks.ts'
import { OutboxOptionsError } from './errors.ts'
import type { EventRef } from './event/event.ts'
import type { Logger } from './runtime/logger.ts'

/** Which path delivered the event: the immediate one, right after commit, or the fallback. */
export type Path = 'immediate' | 'fallback'

export interface Published {
  event: EventRef
  path: Path
  /** From COMMIT to the broker's ack. Known only on the immediate path. */
  latencyMs: number | null
  topic: string
  key: string
  partition: number | null
  offset: string | null
}

export interface Saved {
  event: EventRef
  /** Events of one lane go out in order. A scheduled event has a lane of its own. */
  lane: number
}

export interface Failed {
  event: EventRef
  /** As in `Saved`. */
  lane: number
  path: Path
  error: Error
  /** Attempts counted so far. An outage does not count as an attempt. */
  attempts: number
  /** How long the event waits before the next attempt. */
  retryInMs: number
}

export interface Dead {
  event: EventRef
  error: Error
  attempts: number
}

export interface PollDone {
  /** The publisher that the round was for: its name in the router, or else its own name. */
  publisher: string
  /** How many events the round claimed. */
  claimed: number
  /** From the claim until the outcomes are recorded. */
  durationMs: number
}

/** A single statement or send. Nothing on the path waits for its signal. */
export interface StepDone {
  /** A claim of the fallback, a send of a batch until the client has settled, or a record of outcomes. */
  step: 'claim' | 'send' | 'record'
  /** The publisher that it was for: its name in the router, or else its own name. null: a record, which is for all. */
  publisher: string | null
  durationMs: number
}

export interface Circuit {
  /** The publisher of the destination: its name in the router, or else its own name. */
  publisher: string
  /** The topic, or null for the whole broker. */
  topic: string | null
}

export interface Paused {
  /** The topic, or null for everything. */
  topic: string | null
  /** Who paused it, and why, as given to pause(). */
  by: string | null
  reason: string | null
}

export interface LifecycleEvents {
  /** After COMMIT, before anything is sent. A crash here loses the signal, but not the event. */
  'event:saved': (saved: Saved) => void
  /** After the broker's ack was recorded. A crash between ack and record sends the event again. */
  'event:published': (published: Published) => void
  /** Follows 'event:published' if the event had already been recorded as published: it went out twice. */
  'event:duplicate': (duplicate: { event: EventRef; path: Path }) => void
  /** After a failure was recorded. The outbox will try the event again. */
  'event:failed': (failed: Failed) => void
  /** After an event became a dead letter. A person has to look at it. */
  'event:dead': (dead: Dead) => void
  /** The fallback claimed rows that no process held. */
  'batch:claimed': (batch: { events: readonly EventRef[] }) => void
  /** A round of the fallback that asked the database has ended: it found events, found none or failed. */
  'poll:done': (poll: PollDone) => void
  /** A claim, a send or a record has ended, whether or not it succeeded. */
  'step:done': (done: StepDone) => void
  /** Sends to a destination fail, so the outbox sends it only probes. Fires again after each failed probe. */
  'circuit:open': (circuit: Circuit & { error: Error }) => void
  /** The next event for the destination goes out as a probe. */
  'circuit:half-open': (circuit: Circuit) => void
  /** The destination is reachable again, and the backlog drains. */
  'circuit:closed': (circuit: Circuit) => void
  /** This process has learned of a pause, and begins no more sends to the topic. */
  'topic:paused': (pause: Paused) => void
  /** This process has learned that a pause is over, and the backlog drains. Carries the pause that ended. */
  'topic:resumed': (pause: Paused) => void
  /** A background step failed. The outbox tries it again, unless it is stopping. */
  error: (failure: { step: string; error: Error }) => void
}

const NAMES: Record<keyof LifecycleEvents, true> = {
  'event:saved': true,
  'event:published': true,
  'event:duplicate': true,
  'event:failed': true,
  'event:dead': true,
  'batch:claimed': true,
  'poll:done': true,
  'step:done': true,
  'circuit:open': true,
  'circuit:half-open': true,
  'circuit:closed': true,
  'topic:paused': true,
  'topic:resumed': true,
  error: true,
}

/** What users see: they can listen, and only the outbox emits. */
export interface OutboxEvents {
  on<Name extends keyof LifecycleEvents>(name: Name, listener: LifecycleEvents[Name]): this
  once<Name extends keyof LifecycleEvents>(name: Name, listener: LifecycleEvents[Name]): this
  off<Name extends keyof LifecycleEvents>(name: Name, listener: LifecycleEvents[Name]): this
}

type Guarded = (signal: unknown) => void

export class Lifecycle {
  readonly #emitter = new EventEmitter()
  readonly #logger: Logger
  readonly #guards = new WeakMap<object, Guarded>()

  constructor(logger: Logger) {
    this.#logger = logger
  }

  readonly events: OutboxEvents = {
    on: (name, listener) => {
      this.#emitter.on(name, this.#guard(name, listener))
      return this.events
    },
    once: (name, listener) => {
      this.#emitter.once(name, this.#guard(name, listener))
      return this.events
    },
    off: (name, listener) => {
      this.#emitter.off(name, this.#guard(name, listener))
      return this.events
    },
  }

  hasListeners(name: keyof LifecycleEvents): boolean {
    return this.#emitter.listenerCount(name) > 0
  }

  /** Runs a step and reports how long it took. Without a listener it only runs it. */
  timed<T>(
    { step, publisher }: Pick<StepDone, 'step' | 'publisher'>,
    run: () => Promise<T>,
  ): Promise<T> {
    if (!this.hasListeners('step:done')) return run()
    const begunAt = performance.now()
    return run().finally(() => {
      this.tell('step:done', { step, publisher, durationMs: performance.now() - begunAt })
    })
  }

  tell<Name extends keyof LifecycleEvents>(
    name: Name,
    ...[signal]: Parameters<LifecycleEvents[Name]>
  ): void {
    this.#emitter.emit(name, signal)
  }

  // Without a guard, a listener that throws would stop the other listeners and the caller, and an async one that
  // rejects would end the process. A listener always gets the same guard, so that off() can find it.
  #guard(event: string, listener: (signal: never) => unknown): Guarded {
    if (!Object.hasOwn(NAMES, event)) {
      throw new OutboxOptionsError(
        `there is no lifecycle event '${event}'; ${suggest(event, Object.keys(NAMES))}`,
      )
    }
    if (typeof listener !== 'function') {
      throw new OutboxOptionsError(`the listener for '${event}' must be a function`)
    }
    const complain = (err: unknown) =>
      this.#logger.error({ err, event }, 'a lifecycle listener failed')
    const guard: Guarded =
      this.#guards.get(listener) ??
      ((signal) => {
        try {
          const returned = listener(signal as never)
          if (returned instanceof Promise) returned.catch(complain)
        } catch (error) {
          complain(error)
        }
      })
    this.#guards.set(listener, guard)
    return guard
  }
}
