// withOutbox() and emit(): collect while the work runs, save as the last statement before COMMIT, hand
// over after it. A crash before COMMIT leaves nothing; a crash after it leaves leased rows.
import { AsyncLocalStorage } from 'node:async_hooks'
import { performance } from 'node:perf_hooks'
import type { PgTransactionConfig } from 'drizzle-orm/pg-core'
import { OutboxError } from './errors.ts'
import { type NewEvent, type PreparedEvent, prepareEvent } from './events.ts'
import type { BirthLease } from './fast-path.ts'
import type { ResolvedOptions } from './options.ts'
import type { DrizzleDatabase, Executor } from './store/database.ts'
import type { SavedEvent, Store } from './store/store.ts'

/** Emits one event, or many, into the unit of work; answers the ids. */
export interface Emit {
  (event: NewEvent): string
  (events: readonly NewEvent[]): string[]
}

/** What Drizzle's own transaction takes: isolation level, access mode, deferrable. */
export type UnitOfWorkOptions = PgTransactionConfig

export interface UnitsOfWorkParts {
  readonly db: DrizzleDatabase
  readonly store: Pick<Store<Executor>, 'save'>
  readonly options: ResolvedOptions
  /** The token of this process: whatever it saves is born in its hands. */
  readonly token: string
  /** Whether the immediate path would take these events now. */
  readonly wanted: (events: readonly PreparedEvent[]) => boolean
  /** The next step. `lease` is null when the events were born without one. */
  readonly afterCommit: (events: readonly SavedEvent[], lease: BirthLease | null) => void
}

interface UnitOfWork {
  readonly tx: Executor
  readonly emit: Emit
}

export class UnitsOfWork {
  readonly #parts: UnitsOfWorkParts
  readonly #current = new AsyncLocalStorage<UnitOfWork>()

  constructor(parts: UnitsOfWorkParts) {
    this.#parts = parts
  }

  /** For code deep in the call stack that was not handed `emit`. */
  readonly emit: Emit = ((events: NewEvent & readonly NewEvent[]) => {
    const unit = this.#current.getStore()
    if (unit) return unit.emit(events)
    throw new OutboxError(
      'NO_UNIT_OF_WORK',
      'emit() was called outside a unit of work, so there is no transaction to save the event in; wrap the work in outbox.withOutbox()',
    )
  }) as Emit

  async run<T>(
    work: (tx: never, emit: Emit) => Promise<T> | T,
    config?: UnitOfWorkOptions,
  ): Promise<T> {
    const outer = this.#current.getStore()
    if (outer) return await work(outer.tx as never, outer.emit)

    const { db, store, options, token, wanted, afterCommit } = this.#parts
    let saved: SavedEvent[] = []
    let lease: Omit<BirthLease, 'committedAt'> | null = null
    let thrown: { error: unknown } | null = null

    const transaction = db.transaction(async (tx: Executor) => {
      const unit = new OpenUnit(tx, options)
      try {
        const result = await this.#current.run(unit, async () => work(unit.tx as never, unit.emit))
        const events = unit.finish()
        if (events.length === 0) return result
        const ms = wanted(events) ? options.thresholdMs : 0
        if (ms > 0) lease = { token, deadline: performance.now() + ms }
        saved = await store.save(tx, events, { token, workerId: options.workerId, ms })
        return result
      } catch (error) {
        unit.seal()
        thrown = { error }
        throw error
      }
    }, config) as Promise<T>

    // Only a confirmed COMMIT gets past this line. If its outcome is unknown nothing is published here,
    // and the fallback finds the rows if they exist.
    const result = await transaction.catch((error) => {
      // A failing ROLLBACK must not hide what the work itself threw.
      throw thrown ? thrown.error : error
    })
    const committedAt = performance.now()
    if (saved.length > 0) afterCommit(saved, lease && { ...(lease as BirthLease), committedAt })
    return result
  }
}

/** One unit of work while its callback runs. */
class OpenUnit implements UnitOfWork {
  readonly tx: Executor
  readonly #options: ResolvedOptions
  #events: PreparedEvent[] = []
  #refusal: unknown = null
  #sealed = false

  constructor(tx: Executor, options: ResolvedOptions) {
    this.#options = options
    // A statement that slipped in behind ours and failed would turn COMMIT into a rollback that reports
    // success, and the events would be published for nothing. So the transaction ends with the callback.
    this.tx = new Proxy(tx, {
      get: (target, property) => {
        if (this.#sealed && property !== 'then') throw overError('the transaction was used')
        const value: unknown = Reflect.get(target, property, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  }

  readonly emit: Emit = ((input: NewEvent | readonly NewEvent[]) => {
    if (this.#sealed) throw overError('emit() was called')
    const events = Array.isArray(input) ? (input as NewEvent[]) : [input as NewEvent]
    const prepared = events.map((event) => this.#prepare(event))
    this.#events.push(...prepared)
    const ids = prepared.map(({ id }) => id)
    return Array.isArray(input) ? ids : ids[0]!
  }) as Emit

  /** Ends the unit: nothing more can be emitted or executed in it. */
  seal(): void {
    this.#sealed = true
  }

  /** Ends the unit and answers its events. */
  finish(): readonly PreparedEvent[] {
    this.seal()
    // Somebody may have caught the refusal. Committing without the event would lose it all the same.
    if (this.#refusal !== null) throw this.#refusal
    return this.#events
  }

  #prepare(event: NewEvent): PreparedEvent {
    try {
      return prepareEvent(event, this.#options)
    } catch (error) {
      this.#refusal ??= error
      throw error
    }
  }
}

function overError(what: string): OutboxError {
  return new OutboxError(
    'UNIT_OF_WORK_OVER',
    `${what} after its unit of work had ended; await everything that belongs to it`,
  )
}
