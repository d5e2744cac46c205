// The transaction as the work sees it: closed when the work has ended. A forgotten statement that slipped in behind
// the confirmation and failed would turn COMMIT into a rollback that reports success, and the broker would be told
// that an event was handled whose effects are gone.
import { overError } from '../open-unit.ts'

export async function runGuarded<Tx extends object, T>(
  tx: Tx,
  work: (tx: Tx) => Promise<T> | T,
): Promise<T> {
  let isOver = false
  const guarded = new Proxy(tx, {
    get(target, property) {
      if (isOver && property !== 'then') throw overError('the transaction was used')
      const value: unknown = Reflect.get(target, property, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  try {
    return await work(guarded)
  } finally {
    isOver = true
  }
}
