// Typed lifecycle events: how the background tells the application what happened.
// Signals only: a listener that throws, or an async one that rejects, changes nothing on the path.
import { EventEmitter } from 'eventemitter3'
import type { EventRef } from './events.ts'
import type { Logger } from './logger.ts'

/** Which path delivered: right after commit, or the poller. */
export type Path = 'immediate' | 'fallback'

export interface Published {
  event: EventRef
  path: Path
  /** From COMMIT to the broker's ack. Known on the immediate path only. */
  latencyMs: number | null
  topic: string
  key: string
  partition: number | null
  offset: string | null
}

export interface Failed {
  event: EventRef
  path: Path
  error: Error
  /** Attempts counted so far. An outage counts none. */
  attempts: number
  /** How long the event rests before the next try. */
  retryInMs: number
}

export interface Dead {
  event: EventRef
  error: Error
  attempts: number
}

export interface Circuit {
  /** The publisher whose destination it is, by its name in the router, else by its own. */
  publisher: string
  /** The topic, or null when the whole broker is meant. */
  topic: string | null
  error: Error | null
}

export interface LifecycleEvents {
  /** After COMMIT, before anything is sent. A crash here loses the signal, not the event. */
  'event:saved': (saved: { event: EventRef }) => void
  /** After the broker's ack was recorded. A crash between ack and record sends the event again. */
  'event:published': (published: Published) => void
  /** The same, for an event that had been recorded as published already: it went out twice. */
  'event:duplicate': (duplicate: { event: EventRef; path: Path }) => void
  /** After a failure was recorded; the event will be tried again. */
  'event:failed': (failed: Failed) => void
  /** After an event became a dead letter: a person has to look. */
  'event:dead': (dead: Dead) => void
  /** The fallback took over rows that nobody held. */
  'batch:claimed': (batch: { events: readonly EventRef[] }) => void
  /** A destination is out of reach; nothing is sent to it but probes. Again after a probe that failed. */
  'circuit:open': (circuit: Circuit) => void
  /** The next event for the destination goes out as a probe. */
  'circuit:half-open': (circuit: Circuit) => void
  /** The destination is back; the backlog drains. */
  'circuit:closed': (circuit: Circuit) => void
  /** A background step failed and will be tried again. */
  error: (failure: { step: string; error: Error }) => void
}

/** What users see: they listen, the outbox speaks. */
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

  tell<Name extends keyof LifecycleEvents>(
    name: Name,
    ...[signal]: Parameters<LifecycleEvents[Name]>
  ): void {
    this.#emitter.emit(name, signal)
  }

  // Left alone, a listener that throws stops its neighbours and the caller, and an async one that
  // rejects ends the process. The same listener always gets the same guard: so off() finds it.
  #guard(event: string, listener: (signal: never) => unknown): Guarded {
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
