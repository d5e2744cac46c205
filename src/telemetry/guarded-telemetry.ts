// The one place that keeps a telemetry from breaking the path: whatever it throws is logged, once a minute at most, and
// what it should have run is run all the same, once.
import { isStorable } from '../checks/storable.ts'
import { show } from '../checks/duration.ts'
import { OutboxOptionsError } from '../errors.ts'
import type { EventRef } from '../event/event.ts'
import type { PublishResult } from '../event/publish-result.ts'
import type { Logger } from '../runtime/logger.ts'
import { Trouble } from '../runtime/trouble.ts'
import type {
  DeliveredEvent,
  End,
  Processed,
  SentBatch,
  Telemetry,
  TextHeaders,
  WatchedOutbox,
} from './telemetry.ts'

const TEXTS = {
  level: 'warn',
  begins: 'the telemetry failed; events go out without it',
  goesOn: 'the telemetry still fails',
  over: 'the telemetry works again',
} as const

const METHODS = ['watch', 'create', 'send', 'process'] as const

/** `systemOf` returns the messaging system of a topic's publisher. */
export function guardTelemetry(
  telemetry: Telemetry | undefined,
  logger: Logger,
  systemOf: (topic: string) => string,
): GuardedTelemetry | null {
  if (telemetry === undefined) return null
  const isOne = METHODS.some(
    (name) => typeof (telemetry as Telemetry | null)?.[name] === 'function',
  )
  if (isOne) return new GuardedTelemetry(telemetry, logger, systemOf)
  throw new OutboxOptionsError(
    `telemetry must be otel() from aftercommit/otel, or an object with ${METHODS.join(', ')}, got ${show(telemetry)}`,
  )
}

export class GuardedTelemetry {
  readonly #telemetry: Telemetry
  readonly #systemOf: (topic: string) => string
  readonly #trouble: Trouble

  constructor(telemetry: Telemetry, logger: Logger, systemOf: (topic: string) => string) {
    this.#telemetry = telemetry
    this.#systemOf = systemOf
    this.#trouble = new Trouble(logger, TEXTS)
  }

  watch(outbox: WatchedOutbox): void {
    try {
      this.#telemetry.watch?.(outbox)
    } catch (thrown) {
      // A mistake of the application, which createOutbox() reports like any other.
      if (thrown instanceof OutboxOptionsError) throw thrown
      this.#complain(thrown)
    }
  }

  /** Returns the headers to save: those of the event, and what the telemetry adds. */
  create({ id, type, aggregateType, aggregateId, topic }: EventRef, headers: TextHeaders) {
    if (!this.#telemetry.create) return headers
    const about = { id, type, aggregateType, aggregateId, topic, headers: { ...headers } }
    const added = this.#try(() =>
      this.#telemetry.create!({ ...about, system: this.#systemOf(topic) }),
    )
    return added ? withAdded(headers, added) : headers
  }

  send(
    batch: SentBatch,
    publish: () => Promise<readonly PublishResult[]>,
  ): Promise<readonly PublishResult[]> {
    if (!this.#telemetry.send) return publish()
    const { running, end } = this.#begin((run) => this.#telemetry.send!(batch, run), publish)
    void running.then((results) => this.#try(() => end?.(results)))
    return running
  }

  process<T extends { readonly outcome: 'handled' | 'duplicate' | 'late' }>(
    delivered: DeliveredEvent,
    handle: () => Promise<T>,
  ): Promise<T> {
    if (!this.#telemetry.process) return handle()
    const begin = (run: () => void) => this.#telemetry.process!(delivered, run)
    const { running, end } = this.#begin<T, Processed>(begin, handle)
    running.then(
      ({ outcome }) => this.#try(() => end?.({ outcome })),
      (error: unknown) => this.#try(() => end?.({ outcome: 'failed', error })),
    )
    return running
  }

  #begin<T, Outcome>(begin: (run: () => void) => End<Outcome>, run: () => Promise<T>) {
    let running: Promise<T> | null = null
    const runOnce = () => (running ??= run())
    const end = this.#try(() => begin(() => void runOnce()))
    return { running: runOnce(), end: typeof end === 'function' ? end : undefined }
  }

  #try<T>(call: () => T): T | undefined {
    try {
      const returned = call()
      if (returned instanceof Promise) {
        returned.catch((thrown: unknown) => this.#complain(thrown))
        return undefined
      }
      return returned
    } catch (thrown) {
      this.#complain(thrown)
      return undefined
    }
  }

  #complain(thrown: unknown): void {
    this.#trouble.happened({ err: thrown })
  }
}

function withAdded(given: TextHeaders, added: TextHeaders): TextHeaders {
  const names = new Set(Object.keys(given).map((name) => name.toLowerCase()))
  const fitting = Object.entries(added).filter(
    ([name, value]) =>
      !names.has(name.toLowerCase()) && typeof value === 'string' && isStorable(value),
  )
  return { ...given, ...Object.fromEntries(fitting) }
}
