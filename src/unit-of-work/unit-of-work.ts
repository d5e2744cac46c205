// withOutbox() and emit(): collect while the work runs, save as the last statement before COMMIT, hand
// over after it. A crash before COMMIT leaves nothing; a crash after it leaves leased rows.
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { Backlog } from './backlog.ts'
import type { Database, Executor, TransactionSettings } from './drivers/driver.ts'
import type { Emit } from './emit.ts'
import { OutboxError, OutboxOptionsError } from './errors.ts'
import type { PreparedEvent } from './events.ts'
import type { BirthLease } from './fast-path.ts'
import type { ResolvedOptions } from './options.ts'
import { OpenUnit, type Scope, settle } from './open-unit.ts'
import { openOn, scopeOf, secondTransaction } from './scopes.ts'
import { isSerializationFailure } from './store/database.ts'
import type { SavedEvent, Store } from './store/store.ts'
import { rejectUnknown, requireBoolean, requireCount, requireOneOf } from './validate.ts'

/** What Postgres takes when it begins a transaction (isolation level, access mode, deferrable), and two of ours. */
export interface UnitOfWorkOptions extends TransactionSettings {
  /**
   * What a unit of work does inside another: become part of it, become a savepoint in it, so that it can
   * fail alone, or refuse. @default 'join'
   */
  nested?: 'join' | 'savepoint' | 'error'
  /**
   * How often the whole work is run again, with its events reset, when Postgres could not serialize it
   * (40001) or had to break a deadlock (40P01). The work must not have effects elsewhere. @default 0
   */
  retry?: number
}

export interface UnitsOfWorkParts {
  readonly db: Database<unknown>
  readonly store: Pick<Store<Executor>, 'save'>
  readonly options: ResolvedOptions
  readonly backlog: Backlog
  /** The token of this process: whatever it saves is born in its hands. */
  readonly token: string
  /** Whether the immediate path would take these events now. */
  readonly wanted: (events: readonly PreparedEvent[]) => boolean
  /** The next step. `lease` is null when the events were born without one. */
  readonly afterCommit: (events: readonly SavedEvent[], lease: BirthLease | null) => void
}

type Work<T> = (tx: never, emit: never) => Promise<T> | T

const KNOWN = ['nested', 'retry', 'isolationLevel', 'accessMode', 'deferrable']
const RETRY_JITTER_MS = 20

export class UnitsOfWork {
  readonly #parts: UnitsOfWorkParts

  constructor(parts: UnitsOfWorkParts) {
    this.#parts = parts
  }

  /** For code deep in the call stack that was not handed `emit`. */
  readonly emit: Emit = ((...given: Parameters<Emit>) => {
    const scope = scopeOf(this) as Scope | undefined
    if (scope) return scope.unit.emit(...given)
    const remedy =
      openOn(this.#parts.db.client) === 'once()'
        ? 'make it one with the handling: outbox.withOutbox((tx, emit) => inbox.onceIn(tx, message, ...))'
        : 'wrap the work in outbox.withOutbox()'
    throw new OutboxError(
      'NO_UNIT_OF_WORK',
      `emit() was called outside a unit of work, so there is no transaction to save the event in; ${remedy}`,
    )
  }) as Emit

  async run<T>(work: Work<T>, options: UnitOfWorkOptions = {}): Promise<T> {
    if (typeof work !== 'function') {
      throw new OutboxOptionsError(
        'withOutbox() takes a function: withOutbox(async (tx, emit) => { ... })',
      )
    }
    rejectUnknown('withOutbox()', options, KNOWN)
    const { nested = 'join', retry = 0, ...config } = options
    requireOneOf('nested', nested, ['join', 'savepoint', 'error'])
    requireCount('retry', retry, 100, 0)
    checkSettings(config)
    const outer = scopeOf(this) as Scope | undefined
    if (outer && !outer.isOver()) return await this.#runNested(outer, work, options)
    const inside = openOn(this.#parts.db.client)
    if (inside === 'once()') throw secondTransaction('withOutbox()', inside)
    for (let left = retry; ; left -= 1) {
      try {
        return await this.#runOnce(work, config)
      } catch (error) {
        if (left <= 0 || !isSerializationFailure(error)) throw error
        // Two that clashed would clash again in step.
        await delay(Math.random() * RETRY_JITTER_MS)
      }
    }
  }

  async #runNested<T>(outer: Scope, work: Work<T>, options: UnitOfWorkOptions): Promise<T> {
    const { nested = 'join', retry: _, ...config } = options
    if (nested === 'error') {
      throw new OutboxError('NESTED', 'withOutbox() with nested: error was called inside another')
    }
    const [setting] = Object.keys(config)
    if (setting) {
      throw new OutboxError(
        'NESTED',
        `${setting} cannot be set on a unit of work inside another, which has begun its transaction; set it on the outer one`,
      )
    }
    const { emit } = outer.unit
    if (nested === 'join') return await settle(work(outer.tx as never, emit as never))
    return (await outer.savepoint((tx) => work(tx as never, emit as never))) as T
  }

  async #runOnce<T>(work: Work<T>, settings: TransactionSettings): Promise<T> {
    const { db, store, options, backlog, token, wanted, afterCommit } = this.#parts
    await backlog.refresh()
    let saved: SavedEvent[] = []
    let lease: Omit<BirthLease, 'committedAt'> | null = null
    let thrown: { error: unknown } | null = null

    const transaction = db.begin(async (open) => {
      const unit = new OpenUnit(open, options, backlog, { owner: this, client: db.client })
      try {
        const result = await unit.run((unitTx) => work(unitTx as never, unit.emit as never))
        const events = unit.finish()
        if (events.length === 0) return result
        const ms = wanted(events) ? options.thresholdMs : 0
        if (ms > 0) lease = { token, deadline: performance.now() + ms }
        saved = await store.save(open, events, { token, workerId: options.workerId, ms })
        return result
      } catch (error) {
        unit.seal()
        thrown = { error }
        throw error
      }
    }, settings)

    // Only a confirmed COMMIT gets past this line. If its outcome is unknown nothing is published here,
    // and the fallback finds the rows if they exist.
    const result = await transaction.catch((error) => {
      // A failing ROLLBACK must not hide what the work itself threw.
      throw thrown ? thrown.error : error
    })
    const committedAt = performance.now()
    backlog.saved(saved.length)
    if (saved.length > 0) afterCommit(saved, lease && { ...(lease as BirthLease), committedAt })
    return result
  }
}

const SETTINGS = {
  isolationLevel: ['read uncommitted', 'read committed', 'repeatable read', 'serializable'],
  accessMode: ['read only', 'read write'],
} as const

// Drivers write these into the text of a statement.
function checkSettings({ isolationLevel, accessMode, deferrable }: TransactionSettings): void {
  if (isolationLevel) requireOneOf('isolationLevel', isolationLevel, SETTINGS.isolationLevel)
  if (accessMode) requireOneOf('accessMode', accessMode, SETTINGS.accessMode)
  if (deferrable !== undefined) requireBoolean('deferrable', deferrable)
}
