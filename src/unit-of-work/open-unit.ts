// One unit of work while its callback runs: its events, and the savepoints inside it. No client has a hook for
// either, so the transaction that the callback gets is one that its driver watches for us.
import type { Backlog } from './backlog.ts'
import type { OpenTransaction } from './drivers/driver.ts'
import { type Emit, type EmitArguments, prepareEmitted } from './emit.ts'
import { overError } from './errors.ts'
import type { PreparedEvent } from './events.ts'
import { Nesting } from './nesting.ts'
import type { ResolvedOptions } from './options.ts'
import { enclosingScope, type OpenScope, runInScope, scopeOf } from './scopes.ts'

type Nested = (tx: unknown) => unknown

/** The transaction itself, or a savepoint in it. Whatever happens in a scope vanishes with it. */
export interface Scope extends OpenScope {
  readonly unit: OpenUnit
  readonly parent: Scope | null
  /** As the callback sees it. */
  readonly tx: unknown
  /** Opens a scope inside this one. */
  readonly savepoint: (work: Nested) => Promise<unknown>
  readonly nesting: Nesting
  state: 'open' | 'kept' | 'rolled back'
}

type Emitted = { readonly scope: Scope } & (
  | { readonly event: PreparedEvent }
  | { readonly refusal: unknown }
)

export class OpenUnit {
  readonly #options: ResolvedOptions
  readonly #backlog: Backlog
  readonly #root: Scope
  readonly #emitted: Emitted[] = []
  #sealed = false

  constructor(
    open: OpenTransaction<unknown>,
    options: ResolvedOptions,
    backlog: Backlog,
    place: Pick<OpenScope, 'owner' | 'client'>,
  ) {
    this.#options = options
    this.#backlog = backlog
    this.#root = this.#openScope(open, null, place, new Nesting())
  }

  run<T>(work: (tx: unknown) => Promise<T> | T): Promise<T> {
    return runInScope(this.#root, async () => settle(work(this.#root.tx)))
  }

  readonly emit: Emit = ((...given: EmitArguments) => {
    const here = scopeOf(this.#root.owner) as Scope | undefined
    const scope = here?.unit === this ? here : this.#root
    if (this.#sealed || scope.state !== 'open') throw overError('emit() was called')
    const prepared = this.#prepare(given, scope)
    for (const event of prepared) this.#emitted.push({ scope, event })
    const ids = prepared.map(({ id }) => id)
    return Array.isArray(given[0]) ? ids : ids[0]!
  }) as Emit

  /** Ends the unit: nothing more can be emitted or executed in it. */
  seal(): void {
    this.#sealed = true
  }

  /** Ends the unit and answers its events, in the order of emit. */
  finish(): readonly PreparedEvent[] {
    this.seal()
    this.#root.nesting.check()
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

  #openScope(
    open: OpenTransaction<unknown>,
    parent: Scope | null,
    { owner, client }: Pick<OpenScope, 'owner' | 'client'>,
    nesting: Nesting,
  ): Scope {
    const savepoint = (work: Nested) => this.#nest(open, scope, work)
    const use = () => {
      // A statement that slipped in behind the save and failed would turn COMMIT into a rollback that
      // reports success, and the events would be published for nothing.
      if (this.#sealed || scope.state !== 'open') throw overError('the transaction was used')
    }
    const tx = open.guarded({ use, savepoint })
    const scope: Scope = {
      kind: 'withOutbox()',
      owner,
      client,
      outer: enclosingScope(),
      isOver: () => this.#sealed,
      unit: this,
      parent,
      tx,
      savepoint,
      nesting,
      state: 'open',
    }
    return scope
  }

  /** A savepoint: what is emitted inside is kept only if it is. */
  async #nest(open: OpenTransaction<unknown>, parent: Scope, work: Nested): Promise<unknown> {
    let scope: Scope | null = null
    try {
      const result = await parent.nesting.nest((nesting) =>
        open.savepoint((inner) => {
          const opened = this.#openScope(inner, parent, parent, nesting)
          scope = opened
          return runInScope(opened, async () => {
            const answer = await settle(work(opened.tx))
            nesting.check()
            return answer
          })
        }),
      )
      if (scope) (scope as Scope).state = 'kept'
      return result
    } catch (error) {
      if (scope) (scope as Scope).state = 'rolled back'
      throw error
    }
  }
}

// A list of queries is how sql.begin() of postgres.js takes several at once. Nobody else would send them.
export function settle<T>(answered: T): T | Promise<T> {
  return Array.isArray(answered) ? Promise.all(answered) : answered
}

function isKept(scope: Scope): boolean {
  for (let one: Scope | null = scope; one; one = one.parent) {
    if (one.state === 'rolled back') return false
  }
  return true
}
