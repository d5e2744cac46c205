// Makes the transactions visible that the application begins on its own handle: withOutbox() inside one of them would
// commit separately from it, and is refused. The handle's method is replaced, once, by one that does the same and reports
// each transaction. A proxy is left alone, because what is defined on it may end up on the object behind it.
import { types } from 'node:util'
import type { Marked } from './driver.ts'

type Method = (...given: unknown[]) => unknown
type Begin = (...given: unknown[]) => Promise<unknown>
type Work = (tx: unknown) => unknown

const replaced = new WeakMap<object, { readonly original: Method; readonly replacement: Method }>()
const ended = new WeakSet<object>()

/** Whether this is a transaction that was begun on such a handle and is over. Another one may use its connection. */
export function hasEnded(tx: unknown): boolean {
  return ended.has(tx as object)
}

/** The handle's method as the client made it, for transactions of our own, on the handle or on a copy of it. */
export function unmarked(handle: object, method: string, on = handle): Begin {
  const current = methodOf(handle, method)
  const { original, replacement } = replaced.get(handle) ?? {}
  // Other code may have replaced it since, to trace or to count transactions.
  return (current === replacement ? original! : current).bind(on) as Begin
}

export function markTransactions(
  handle: object,
  method: string,
  mark: () => Marked,
  options?: ReplaceOptions,
): void {
  replaceOnce(
    handle,
    method,
    (original) =>
      function (this: object | undefined, ...given: unknown[]) {
        const transaction = mark()
        const begun: object[] = []
        const inside = given.map((one) => {
          if (typeof one !== 'function') return one
          return (tx: object) => {
            begun.push(tx)
            return transaction.run(() => (one as Work)(tx))
          }
        })
        // On a copy of the handle, if it is called there. What it returns may be more than a promise.
        const result = original.apply(this ?? handle, inside) as Promise<unknown>
        const end = () => {
          for (const tx of begun) ended.add(tx)
          transaction.end()
        }
        result.then(end, end)
        return result
      },
    options,
  )
}

interface ReplaceOptions {
  /** For a client that is a proxy itself, and keeps what is defined on it. */
  readonly evenProxy?: boolean
}

/** Replaces a method of the handle, unless that was done before. */
export function replaceOnce(
  handle: object,
  method: string,
  replace: (original: Method) => Method,
  { evenProxy = false }: ReplaceOptions = {},
): void {
  if (replaced.has(handle) || (types.isProxy(handle) && !evenProxy)) return
  const original = methodOf(handle, method)
  const replacement = replace(original)
  const isDefined = Reflect.defineProperty(handle, method, {
    value: replacement,
    configurable: true,
    writable: true,
  })
  if (isDefined) replaced.set(handle, { original, replacement })
}

function methodOf(handle: object, method: string): Method {
  return Reflect.get(handle, method) as Method
}
