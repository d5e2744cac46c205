// Makes the transactions visible that the application begins on its own handle: withOutbox() inside one of them would
// commit separately from it, and is refused. The handle's method is replaced, once, by one that does the same and reports
// each transaction. A proxy is left alone, because what is defined on it may end up on the object behind it.
import { types } from 'node:util'
import type { Marked } from './driver.ts'

type Begin = (...given: unknown[]) => Promise<unknown>
type Work = (tx: unknown) => unknown

const replaced = new WeakMap<object, { readonly original: Begin; readonly marking: Begin }>()
const ended = new WeakSet<object>()

/** Whether this is a transaction that was begun on such a handle and is over. Its connection may be in other hands. */
export function hasEnded(tx: unknown): boolean {
  return ended.has(tx as object)
}

/** The handle's method as the client made it, for transactions of our own, on the handle or on a copy of it. */
export function unmarked(handle: object, method: string, on = handle): Begin {
  const current = methodOf(handle, method)
  const { original, marking } = replaced.get(handle) ?? {}
  // Other code may have replaced it since, to trace or to count transactions.
  return (current === marking ? original! : current).bind(on)
}

export function markTransactions(handle: object, method: string, mark: () => Marked): void {
  if (replaced.has(handle) || types.isProxy(handle)) return
  const original = methodOf(handle, method)
  const marking: Begin = function (this: object | undefined, ...given: unknown[]) {
    const transaction = mark()
    const begun: object[] = []
    const inside = given.map((one) => {
      if (typeof one !== 'function') return one
      return (tx: object) => {
        begun.push(tx)
        return transaction.run(() => (one as Work)(tx))
      }
    })
    // On a copy of the handle, if it is called there.
    return Promise.resolve(original.apply(this ?? handle, inside)).finally(() => {
      for (const tx of begun) ended.add(tx)
      transaction.end()
    })
  }
  const isDefined = Reflect.defineProperty(handle, method, {
    value: marking,
    configurable: true,
    writable: true,
  })
  if (isDefined) replaced.set(handle, { original, marking })
}

function methodOf(handle: object, method: string): Begin {
  return Reflect.get(handle, method) as Begin
}
