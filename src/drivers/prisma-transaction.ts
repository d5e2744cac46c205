// What a unit of work receives on Prisma: the client that $transaction() passes to its callback, behind a proxy. Prisma sends a
// query when it is first awaited, so the check is there as well as where the query is made. From then on it is in flight.
import type { TransactionWatch } from './driver.ts'
import { deadEnd } from './dead-end.ts'
import type { InFlight } from './in-flight.ts'
import { refuseControl } from './transaction-text.ts'

type Method = (...given: unknown[]) => unknown

const guarded = new WeakSet<object>()

/** Whether it is one of ours, which refuses savepoints as statements. */
export function isGuarded(tx: object): boolean {
  return guarded.has(tx)
}

export function guardPrisma<TTx extends object>(
  tx: TTx,
  { use, savepoint }: TransactionWatch<TTx>,
  inFlight: InFlight,
): TTx {
  // Prisma's own nests too, by a list of queries as well, which are sent as they are.
  const $transaction = async (work: unknown) => {
    use()
    return await savepoint(
      typeof work === 'function'
        ? (work as (inner: TTx) => unknown)
        : () => inOrder(work as readonly PromiseLike<unknown>[]),
    )
  }
  const guard = { check: use, inFlight }
  const own = guardMethods(tx, guard, (property) => property === '$transaction' && $transaction)
  guarded.add(own)
  return own
}

async function inOrder(queries: readonly PromiseLike<unknown>[]): Promise<unknown[]> {
  const results: unknown[] = []
  for (const query of queries) results.push(await query)
  return results
}

interface Guard {
  readonly check: () => void
  readonly inFlight: InFlight
}

/** The transaction, or the delegate of a model in it. */
function guardMethods<T extends object>(
  target: T,
  guard: Guard,
  replace: (property: string | symbol) => unknown,
): T {
  return new Proxy(target, {
    get(_, property) {
      const replacement = replace(property)
      if (replacement) return replacement
      const value: unknown = Reflect.get(target, property)
      if (typeof value === 'function') {
        return (...given: unknown[]) => {
          try {
            guard.check()
            if (String(property).startsWith('$')) refuseControl(textOf(given[0]))
          } catch (error) {
            return deadEnd(error)
          }
          return guardQuery(Reflect.apply(value, target, given), guard)
        }
      }
      if (typeof value !== 'object' || value === null || typeof property === 'symbol') return value
      return guardMethods(value, guard, () => undefined)
    },
  })
}

/** A query that has not been sent, or one that follows a relation from it. */
function guardQuery(made: unknown, guard: Guard): unknown {
  if (typeof (made as { then?: unknown } | null | undefined)?.then !== 'function') return made
  const query = made as PromiseLike<unknown> & { readonly [Symbol.toStringTag]?: unknown }
  // What a method of an extension returns may be a promise of its own, which has begun already.
  const isSent = query[Symbol.toStringTag] !== 'PrismaPromise'
  let sent = isSent ? guard.inFlight.follow(query) : null
  return new Proxy(query, {
    get(_, property) {
      const value: unknown = Reflect.get(query, property)
      if (typeof value !== 'function') return value
      return (...given: unknown[]) => {
        try {
          guard.check()
        } catch (error) {
          return Reflect.apply(
            (deadEnd(error) as Record<string, Method>)[String(property)]!,
            null,
            given,
          )
        }
        if (SENDING.has(property)) {
          sent ??= guard.inFlight.follow(query)
          return Reflect.apply(sent[property as 'then'], sent, given) as unknown
        }
        const result: unknown = Reflect.apply(value, query, given)
        return property === 'requestTransaction' ? result : guardQuery(result, guard)
      }
    },
  })
}

const SENDING = new Set<string | symbol>(['then', 'catch', 'finally'])

/** The text of anything that a raw query takes: a string, a template, or Prisma.sql. */
function textOf(query: unknown): string {
  if (typeof query === 'string') return query
  if (Array.isArray(query)) return query.join('$1')
  const { sql } = (query ?? {}) as { sql?: unknown }
  return typeof sql === 'string' ? sql : ''
}
