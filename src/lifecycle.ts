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
  /** The topic, or null when the whole broker is meant. */
  topic: string | null
  error: Error | null
}

export interface LifecycleEvents {
  /** After COMMIT, before anything is sent. A crash here loses the signal, not the event. */
  'event:saved': (saved: { event: EventRef }) => void
  /** After the broker's ack was recorded. A crash between ack and record sends the event again. */
  'event:published': (published: Published) => void
  /** After a failure was recorded; the event will be tried again. */
  'event:failed': (failed: Failed) => void
  /** After an event became a dead letter: a person has to look. */
  'event:dead': (dead: Dead) => void
  /** The fallback took over rows that nobody held. */
  'batch:claimed': (batch: { events: readonly EventRef[] }) => void
  /** A destination is out of reach; nothing is sent to it but probes. */
  'circuit:open': (circuit: Circuit) => void
  /** The next event for the destination goes out as a probe. */
  'circuit:half-open': (circuit: Circuit) => void
  /** The destination is back; the backlog drains. */
  'circuit:closed': (circuit: Circuit) => void
  /** A background step failed and will be tried again. */
  error: (failure: { step: string; error: Error }) => void
}

/** What users see of the emitter: they listen, the outbox speaks. */
export type OutboxEvents = Pick<EventEmitter<LifecycleEvents>, 'on' | 'once' | 'off'>

type Listener = (signal: unknown) => unknown

export class Lifecycle {
  readonly events = new EventEmitter<LifecycleEvents>()
  readonly #logger: Logger

  constructor(logger: Logger) {
    this.#logger = logger
  }

  hasListeners(name: keyof LifecycleEvents): boolean {
    return this.events.listenerCount(name) > 0
  }

  // Not events.emit(): that one lets a throwing listener stop its neighbours and the caller, and an
  // async listener's rejection would end the process.
  tell<Name extends keyof LifecycleEvents>(
    name: Name,
    signal: Parameters<LifecycleEvents[Name]>[0],
  ): void {
    for (const listener of this.events.listeners(name) as Listener[]) {
      try {
        const returned = listener(signal)
        if (returned instanceof Promise) returned.catch((error) => this.#complain(name, error))
      } catch (error) {
        this.#complain(name, error)
      }
    }
  }

  #complain(name: string, error: unknown): void {
    this.#logger.error({ err: error, event: name }, 'a lifecycle listener failed')
  }
}
