// One unit of work while its callback runs: its events, and the savepoints inside it. No client has a hook for either,
// so the driver wraps the transaction that the callback gets, and reports every use of it here.
import type { Backlog } from './backlog.ts'
import type { OpenTransaction } from '../drivers/driver.ts'
import { type Emit, type EmitArguments, prepareEmitted } from '../event/emit.ts'
import { nestedOverError, OutboxError, overError } from '../errors.ts'
import type { PreparedEvent } from '../event/event.ts'
import { Nesting } from './nesting.ts'
import type { ResolvedOptions } from '../options/options.ts'
import { enclosing, innermost, runInside, type Surrounding } from './surroundings.ts'

type Nested = (tx: unknown) => unknown

/** The transaction itself, or a savepoint in it. Everything that happens in a level is undone with it. */
export interface Level extends Surrounding {
  readonly owner: object
  readonly unit: OpenUnit
  readonly parent: Level | null
  /** The transaction as the callback sees it. */
  readonly tx: unknown
  /** Opens a level inside this one. */
  readonly savepoint: (work: Nested) => Promise<unknown>
  readonly nesting: Nesting
  state: 'open' | 'kept' | 'rolled back'
}

type Emitted = { readonly level: Level } & (
  | { readonly event: PreparedEvent }
  | { readonly refusal: unknown }
  /** The id of a scheduled event that was emitted in the same unit, and cancelled again. */
  | { readonly cancelled: string }
)

const levels = new WeakMap<object, Level>()

/** The level whose callback received this transaction, if it is one of ours. */
export function levelOf(tx: unknown): Level | undefined {
  return levels.get(tx as object)
}

export interface OpenUnitParts extends Pick<Level, 'owner' | 'client'> {
  readonly open: OpenTransaction<unknown>
  readonly options: ResolvedOptions
  readonly backlog: Backlog | null
}

export class OpenUnit {
  readonly #options: ResolvedOptions
  readonly #backlog: Backlog | null
  readonly #root: Level
  readonly #emitted: Emitted[] = []
  #sealed = false

  constructor({ open, options, backlog, owner, client }: OpenUnitParts) {
    this.#options = options
    this.#backlog = backlog
    this.#root = this.#openLevel(open, null, { owner, client }, new Nesting())
  }

  run<T>(work: (tx: unknown) => Promise<T> | T): Promise<T> {
    return runInside(this.#root, async () => await awaitAll(work(this.#root.tx)))
  }

  readonly emit: Emit = ((...given: EmitArguments) => {
    const here = innermost((one) => (one as Level).unit === this) as Level | undefined
    return this.emitAt(here ?? this.#root, given)
  }) as Emit

  emitAt(level: Level, given: EmitArguments): string | string[] {
    if (this.#sealed) throw overError('emit() was called')
    try {
      if (level.state !== 'open') throw nestedOverError()
      const prepared = prepareEmitted(given, this.#options)
      this.#checkBacklog(prepared)
      for (const event of prepared) this.#emitted.push({ level, event })
      const ids = prepared.map(({ id }) => id)
      return Array.isArray(given[0]) ? ids : ids[0]!
    } catch (refusal) {
      this.#emitted.push({ level, refusal })
      throw refusal
    }
  }

  // Scheduled events count as soon as they are due.
  #checkBacklog(prepared: readonly PreparedEvent[]): void {
    if (!this.#backlog || prepared.every(({ schedule }) => schedule)) return
    this.#backlog.check(() => [...this.#keptEvents(), ...prepared].filter(isDueAtOnce).length)
  }

  /** Takes back a scheduled event that was emitted in this unit and is not saved yet. Returns false if it is not one. */
  takeBack(level: Level, id: string): boolean {
    if (this.#sealed) throw overError('cancel() was called')
    if (level.state !== 'open') throw nestedOverError('cancel()')
    const isEmitted = this.#keptEvents().some((event) => event.id === id && event.schedule)
    if (isEmitted) this.#emitted.push({ level, cancelled: id })
    return isEmitted
  }

  /**
   * Work that joined this unit at the level has failed. Half of it may be done, so the level cannot be kept, even if the
   * application catches the error.
   */
  doom(level: Level, cause: unknown): void {
    const refusal = new OutboxError(
      'NESTED',
      "withOutbox() inside this unit of work failed, and its error was caught, so the whole unit rolls back; let the inner one fail alone with nested: 'savepoint'",
      { cause },
    )
    this.#emitted.push({ level, refusal })
  }

  /** Ends the unit: nothing more can be emitted or executed in it. */
  seal(): void {
    this.#sealed = true
  }

  /** Ends the unit and returns its events, in the order of emit(). */
  finish(): readonly PreparedEvent[] {
    this.seal()
    this.#root.nesting.check()
    for (const one of this.#kept()) {
      // The application may have caught the refusal. Committing without the event would still lose it.
      if ('refusal' in one) throw one.refusal
    }
    return this.#keptEvents()
  }

  #keptEvents(): PreparedEvent[] {
    const kept = this.#kept()
    const cancelled = new Set(kept.flatMap((one) => ('cancelled' in one ? [one.cancelled] : [])))
    return kept.flatMap((one) =>
      'event' in one && !cancelled.has(one.event.id) ? [one.event] : [],
    )
  }

  #kept(): Emitted[] {
    return this.#emitted.filter(({ level }) => isKept(level))
  }

  #openLevel(
    open: OpenTransaction<unknown>,
    parent: Level | null,
    { owner, client }: Pick<Level, 'owner' | 'client'>,
    nesting: Nesting,
  ): Level {
    const savepoint = (work: Nested) => this.#nest(open, level, work)
    const use = () => {
      // If a statement slipped in after the save and failed, COMMIT would roll back yet report success, and events
      // would be published that were never saved.
      if (this.#sealed || level.state !== 'open') throw overError('the transaction was used')
    }
    const tx = open.guarded({ use, savepoint })
    const level: Level = {
      kind: 'withOutbox()',
      owner,
      client,
      outer: enclosing(),
      isOver: () => this.#sealed,
      unit: this,
      parent,
      tx,
      savepoint,
      nesting,
      state: 'open',
    }
    levels.set(tx as object, level)
    return level
  }

  /** Runs a savepoint. Events emitted inside are kept only if it is. */
  async #nest(open: OpenTransaction<unknown>, parent: Level, work: Nested): Promise<unknown> {
    let level: Level | null = null
    try {
      const result = await parent.nesting.nest((nesting) =>
        open.savepoint((inner) => {
          const opened = this.#openLevel(inner, parent, parent, nesting)
          level = opened
          return runInside(opened, async () => {
            const answer = await awaitAll(work(opened.tx))
            nesting.check()
            return answer
          })
        }),
      )
      if (level) (level as Level).state = 'kept'
      return result
    } catch (error) {
      if (level) (level as Level).state = 'rolled back'
      throw error
    }
  }
}

// A callback may return a list of queries, as with postgres.js's sql.begin(). No other code would await and send them.
export function awaitAll<T>(answered: T): T | Promise<T> {
  return Array.isArray(answered) ? Promise.all(answered) : answered
}

export function isDueAtOnce({ schedule }: PreparedEvent): boolean {
  return schedule === undefined
}

function isKept(level: Level): boolean {
  for (let one: Level | null = level; one; one = one.parent) {
    if (one.state === 'rolled back') return false
  }
  return true
}
