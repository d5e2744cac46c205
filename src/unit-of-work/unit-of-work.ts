// withOutbox() and emit(): events are collected while the work runs, saved in the last statement before COMMIT, and
// handed over after it. A crash before COMMIT leaves nothing; a crash after it leaves leased rows.
import { randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { Backlog } from './backlog.ts'
import type { Database, Executor, TransactionSettings } from '../drivers/driver.ts'
import type { Emit } from '../event/emit.ts'
import { OutboxError, OutboxOptionsError } from '../errors.ts'
import type { PreparedEvent } from '../event/event.ts'
import { writePayloads } from '../event/stored-payload.ts'
import type { ResolvedOptions } from '../options/options.ts'
import type { BirthLease, NextStep } from './hand-over.ts'
import { OpenUnit, type Level, awaitAll } from './open-unit.ts'
import {
  innermostOf,
  markTransactions,
  openOn,
  OWN_TRANSACTION_REMEDY,
  secondTransaction,
  type Surrounding,
} from './surroundings.ts'
import { isSerializationFailure } from '../store/database.ts'
import type { SavedEvent, Store } from '../store/outbox/outbox-store.ts'
import { rejectUnknown, requireBoolean, requireCount, requireOneOf } from '../checks/checks.ts'

/** Postgres's own settings for a transaction (isolation level, access mode, deferrable), and two of ours. */
export interface UnitOfWorkOptions extends TransactionSettings {
  /**
   * What a unit of work does inside another: `'join'` makes it part of the outer one, `'savepoint'` lets it fail alone,
   * and `'error'` refuses it. If one that joined fails, the whole unit rolls back, even if the error is caught.
   * @default 'join'
   */
  nested?: 'join' | 'savepoint' | 'error'
  /**
   * How often to run the whole work again, with its events reset, after a serialization failure (40001) or a deadlock
   * (40P01). The work must not have effects outside the database. @default 0
   */
  retry?: number
}

export interface UnitsOfWorkParts {
  readonly db: Database<unknown>
  readonly store: Pick<Store<Executor>, 'save'>
  readonly options: ResolvedOptions
  /** null without maxBacklog. */
  readonly backlog: Backlog | null
  readonly delivery: NextStep
}

type Work<T> = (tx: never, emit: never) => Promise<T> | T

const KNOWN = ['nested', 'retry', 'isolationLevel', 'accessMode', 'deferrable']
const RETRY_JITTER_MS = 20

/** What to do instead of calling emit() outside a unit of work, by the transaction that is open there. */
const REMEDIES = {
  none: 'wrap the work in outbox.withOutbox(), or, inside a transaction that your code began, call outbox.emitIn(tx, event)',
  'withOutbox()': 'use the emit() of the outbox whose unit of work this is, or emitIn(tx, event)',
  'once()':
    'to emit while handling a message, use outbox.withOutbox((tx, emit) => inbox.onceIn(tx, message, ...))',
  'a transaction of your own': OWN_TRANSACTION_REMEDY,
} as const

export class UnitsOfWork {
  readonly #parts: UnitsOfWorkParts
  /** The lease token of every event that this outbox saves. */
  readonly #token = randomUUID()

  constructor(parts: UnitsOfWorkParts) {
    this.#parts = parts
    markTransactions(parts.db)
  }

  /** The unit of work, or the nested transaction in it, that encloses the call and is open. */
  get here(): Level | undefined {
    const level = innermostOf(this) as Level | undefined
    return level && !level.isOver() && !isOwn(openOn(this.#parts.db.client)) ? level : undefined
  }

  /** For code deep in the call stack that has no `emit` of its own. */
  readonly emit: Emit = ((...given: Parameters<Emit>) => {
    const level = innermostOf(this) as Level | undefined
    const inside = openOn(this.#parts.db.client)
    if (level && !isOwn(inside)) return level.unit.emit(...given)
    throw new OutboxError(
      'NO_UNIT_OF_WORK',
      `emit() was called outside a unit of work, so the event would not be saved with your changes; ${REMEDIES[inside?.kind ?? 'none']}`,
    )
  }) as Emit

  /**
   * A unit of work that the application begins on its own handle. As there, it is always a transaction of its own, even
   * inside another one.
   */
  async transact<T>(
    work: (tx: never) => Promise<T> | T,
    settings?: TransactionSettings | null,
  ): Promise<T> {
    requireWork(work, 'transaction(async (tx) => { ... })')
    checkSettings(settings ?? {})
    return await this.#runOnce(work, settings ?? {})
  }

  async run<T>(work: Work<T>, options: UnitOfWorkOptions = {}): Promise<T> {
    requireWork(work, 'withOutbox(async (tx, emit) => { ... })')
    rejectUnknown('withOutbox()', options, KNOWN)
    const { nested = 'join', retry = 0, ...config } = options
    requireOneOf('nested', nested, ['join', 'savepoint', 'error'])
    requireCount('retry', retry, 100, 0)
    checkSettings(config)
    const outer = innermostOf(this) as Level | undefined
    const inside = openOn(this.#parts.db.client)
    if (outer && !outer.isOver() && !isOwn(inside))
      return await this.#runNested(outer, work, options)
    if (inside) throw secondTransaction('withOutbox()', inside)
    for (let left = retry; ; left -= 1) {
      try {
        return await this.#runOnce(work, config)
      } catch (error) {
        if (left <= 0 || !isSerializationFailure(error)) throw error
        // Without jitter, two units of work that clashed would clash again.
        await delay(Math.random() * RETRY_JITTER_MS)
      }
    }
  }

  async #runNested<T>(outer: Level, work: Work<T>, options: UnitOfWorkOptions): Promise<T> {
    const { nested = 'join', retry: _, ...config } = options
    if (nested === 'error') {
      throw new OutboxError(
        'NESTED',
        "withOutbox() with nested: 'error' was called inside another unit of work; call it outside, or allow 'join' or 'savepoint'",
      )
    }
    const [setting] = Object.keys(config)
    if (setting) {
      throw new OutboxError(
        'NESTED',
        `${setting} cannot be set on a nested unit of work, because the transaction has already begun; set it on the outer one`,
      )
    }
    const { emit } = outer.unit
    if (nested === 'join') {
      try {
        return await awaitAll(work(outer.tx as never, emit as never))
      } catch (error) {
        outer.unit.doom(outer, error)
        throw error
      }
    }
    return (await outer.savepoint((tx) => work(tx as never, emit as never))) as T
  }

  async #runOnce<T>(work: Work<T>, settings: TransactionSettings): Promise<T> {
    const { db, options, backlog, delivery } = this.#parts
    const { maxPayloadBytes } = options
    const write = options.payloads?.write
    if (backlog) await backlog.refresh()
    let saved: Saved | null = null
    let thrown: { error: unknown } | null = null
    let result: T

    try {
      // Rule 3: only a confirmed COMMIT gets past this statement. If the outcome of COMMIT is unknown, nothing is
      // published here, and the fallback finds the rows if they exist.
      result = await db.begin(async (open) => {
        const unit = new OpenUnit({ open, options, backlog, owner: this, client: db.client })
        try {
          const answer = await unit.run((unitTx) => work(unitTx as never, unit.emit as never))
          const emitted = unit.finish()
          const events = write ? await writePayloads(emitted, write, maxPayloadBytes) : emitted
          if (events.length > 0) saved = await this.#save(open, events)
          return answer
        } catch (error) {
          unit.seal()
          thrown = { error }
          throw error
        }
      }, settings)
    } catch (error) {
      // A failed ROLLBACK must not hide the error that the work threw.
      throw thrown ? (thrown as { error: unknown }).error : error
    }
    if (saved === null) return result
    const { events, lease } = saved as Saved
    backlog?.saved(events.filter(({ dueInMs }) => dueInMs === undefined).length)
    delivery.handOver(events, lease && { ...lease, committedAt: performance.now() })
    return result
  }

  /** The last statement before COMMIT. Events that the immediate path would not take are saved without a lease. */
  async #save(open: Executor, events: readonly PreparedEvent[]): Promise<Saved> {
    const { store, options, delivery } = this.#parts
    const { thresholdMs, workerId } = options
    const token = this.#token
    const due = events.filter(({ schedule }) => !schedule)
    const ms = due.length > 0 && delivery.takesAny(due) ? thresholdMs : 0
    const deadline = performance.now() + ms
    const saved = await store.save(open, events, { token, workerId, ms })
    return { events: saved, lease: ms > 0 ? { token, deadline } : null }
  }
}

function requireWork(work: unknown, usage: string): void {
  if (typeof work !== 'function')
    throw new OutboxOptionsError(`a unit of work takes a function: ${usage}`)
}

/** Whether the application began it, so that what is saved in a unit of work around it would not share its fate. */
function isOwn(inside: Surrounding | undefined): boolean {
  return inside?.kind === 'a transaction of your own'
}

/** What a unit of work has saved, and its lease, if any. */
interface Saved {
  readonly events: readonly SavedEvent[]
  readonly lease: Omit<BirthLease, 'committedAt'> | null
}

const SETTINGS = {
  isolationLevel: ['read uncommitted', 'read committed', 'repeatable read', 'serializable'],
  accessMode: ['read only', 'read write'],
} as const

// Checked here, because drivers put these values into the text of a statement.
function checkSettings({ isolationLevel, accessMode, deferrable }: TransactionSettings): void {
  if (isolationLevel) requireOneOf('isolationLevel', isolationLevel, SETTINGS.isolationLevel)
  if (accessMode) requireOneOf('accessMode', accessMode, SETTINGS.accessMode)
  if (deferrable !== undefined) requireBoolean('deferrable', deferrable)
}
