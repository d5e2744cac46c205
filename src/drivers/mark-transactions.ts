// Makes the transactions visible that the application begins on its own handle: withOutbox() inside one of them would
// commit separately from it, and is refused. The handle's method is replaced, once, by one that does the same and tells
// us. A proxy is left alone, because what is defined on it may end up on the object behind it.
import { types } from 'node:util'
import type { Marked } from './driver.ts'

type Begin = (...given: unknown[]) => Promise<unknown>

const originals = new WeakMap<object, Begin>()

/** The handle's method as the client made it, for transactions of our own, on the handle or on a copy of it. */
export function unmarked(handle: object, method: string, on = handle): Begin {
  return (originals.get(handle) ?? methodOf(handle, method)).bind(on)
}

export function markTransactions(handle: object, method: string, mark: () => Marked): void {
  if (originals.has(handle) || types.isProxy(handle)) return
  const original = methodOf(handle, method)
  const begin: Begin = (...given) => {
    const transaction = mark()
    const inside = given.map((one) => {
      if (typeof one !== 'function') return one
      return (tx: unknown) => transaction.run(() => (one as (tx: unknown) => unknown)(tx))
    })
    return original.apply(handle, inside).finally(() => transaction.end())
  }
  const isDefined = Reflect.defineProperty(handle, method, {
    value: begin,
    configurable: true,
    writable: true,
  })
  if (isDefined) originals.set(handle, original)
}

function methodOf(handle: object, method: string): Begin {
  return Reflect.get(handle, method) as Begin
}
