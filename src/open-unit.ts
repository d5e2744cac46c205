// One unit of work while its callback runs: its events, and the savepoints inside it. Drizzle has no
// hook for either, so the transaction that the callback gets is a proxy that notices both.
import type { AsyncLocalStorage } from 'node:async_hooks'
import type { Backlog } from './backlog.ts'
import { type Emit, type EmitArguments, prepareEmitted } from './emit.ts'
import { OutboxError } from './errors.ts'
import type { PreparedEvent } from './events.ts'
import type { ResolvedOptions } from './options.ts'
import type { Executor as AnyExecutor } from './store/database.ts'

/** A Drizzle transaction: it runs statements and nests. */
export interface Executor extends AnyExecutor {
  transaction(work: (tx: Executor) => Promise<unknown>): Promise<unknown>
}

/** The transaction itself, or a savepoint in it. Whatever happens in a scope vanishes with it. */
export interface Scope {
  readonly unit: OpenUnit
  readonly parent: Scope | null
  /** As the callback sees it. */
  readonly tx: Executor
  state: 'open' | 'kept' | 'rolled back'
}

type Emitted = { readonly scope: Scope } & (
  | { readonly event: PreparedEvent }
  | { readonly refusal: unknown }
)

export class OpenUnit {
  readonly #options: ResolvedOptions
  readonly #backlog: Backlog
  readonly #current: AsyncLocalStorage<Scope>
  readonly #root: Scope
  readonly #emitted: Emitted[] = []
  #openSavepoints = 0
  #sealed = false

  constructor(
    tx: Executor,
    options: ResolvedOptions,
    backlog: Backlog,
    current: AsyncLocalStorage<Scope>,
  ) {
    this.#options = options
    this.#backlog = backlog
    this.#current = current
    this.#root = this.#openScope(tx, null)
  }

  run<T>(work: (tx: Executor) => Promise<T> | T): Promise<T> {
    return this.#current.run(this.#root, async () => work(this.#root.tx))
  }

  readonly emit: Emit = ((...given: EmitArguments) => {
    const here = this.#current.getStore()
    const scope = here?.unit === this ? here : this.#root
    if (this.#sealed || scope.state !== 'open') throw overError('emit() was called')
    const prepared = this.#prepare(given, scope)
    for (const event of prepared) this.#emitted.push({ scope, event })
    const ids = prepared.map(({ id }) => id)
    return Array.isArray(given[0]) ? ids : ids[0]!
  }) as Emit

  get isOver(): boolean {
    return this.#sealed
  }

  /** Ends the unit: nothing more can be emitted or executed in it. */
  seal(): void {
    this.#sealed = true
  }

  /** Ends the unit and answers its events, in the order of emit. */
  finish(): readonly PreparedEvent[] {
    this.seal()
    if (this.#openSavepoints > 0) throw overError('a nested transaction was still running')
    const kept = this.#kept()
    for (const one of kept) {
      // Somebody may have caught the refusal. Committing without the event would lose it all the same.
      if ('refusal' in one) throw one.refusal
    }
    return kept.map((one) => (one as { event: PreparedEvent }).event)
  }

  #kept(): Emitted[] {
    return this.#emitted.filter(({ scope }) => isKept(scope))
  }

  #prepare(given: EmitArguments, scope: Scope): PreparedEvent[] {
    try {
      const prepared = prepareEmitted(given, this.#options)
      this.#backlog.check(() => this.#kept().length + prepared.length)
      return prepared
    } catch (refusal) {
      this.#emitted.push({ scope, refusal })
      throw refusal
    }
  }

  #openScope(tx: Executor, parent: Scope | null): Scope {
    const guarded = new Proxy(tx, {
      get: (target, property) => {
        // A statement that slipped in behind the save and failed would turn COMMIT into a rollback that
        // reports success, and the events would be published for nothing.
        const over = this.#sealed || scope.state !== 'open'
        if (over && property !== 'then') throw overError('the transaction was used')
        if (property === 'transaction') {
          return (work: (tx: Executor) => Promise<unknown>) => this.#nest(tx, scope, work)
        }
        const value: unknown = Reflect.get(target, property, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    const scope: Scope = { unit: this, parent, tx: guarded, state: 'open' }
    return scope
  }

  /** A savepoint: what is emitted inside is kept only if it is. */
  async #nest(tx: Executor, parent: Scope, work: (tx: Executor) => Promise<unknown>) {
    this.#openSavepoints += 1
    let scope: Scope | null = null
    try {
      const result = await tx.transaction((inner) => {
        const opened = this.#openScope(inner, parent)
        scope = opened
        return this.#current.run(opened, async () => work(opened.tx))
      })
      if (scope) (scope as Scope).state = 'kept'
      return result
    } catch (error) {
      if (scope) (scope as Scope).state = 'rolled back'
      throw error
    } finally {
      this.#openSavepoints -= 1
    }
  }
}

function isKept(scope: Scope): boolean {
  for (let one: Scope | null = scope; one; one = one.parent) {
    if (one.state === 'rolled back') return false
  }
  return true
}

export function overError(what: string): OutboxError {
  return new OutboxError(
    'UNIT_OF_WORK_OVER',
    `${what} after its unit of work had ended; await everything that belongs to it`,
  )
}
