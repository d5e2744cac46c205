// A transaction whose connection died. postgres.js rejects it at once, but still sends ROLLBACK or COMMIT when the callback
// settles. There is nothing left to write to, and the resulting exception ends the process (porsager/postgres#1208).
import { setImmediate as nextTurn } from 'node:timers/promises'
import { overError } from '../errors.ts'

/** Set when the transaction is over, whatever ended it. */
export interface Life {
  end: { readonly error: unknown } | null
}

/** The end of every transaction. Its error, with a stack, is made only for code that comes too late. */
export const OVER: NonNullable<Life['end']> = {
  get error() {
    return overError('the transaction was used')
  },
}

/** Connection errors have an errno; Postgres errors have a severity. */
export function noteLoss(life: Life, error: unknown): void {
  const { errno, severity } = (error ?? {}) as { errno?: unknown; severity?: unknown }
  if (errno !== undefined || severity === 'FATAL' || severity === 'PANIC') life.end ??= { error }
}

/**
 * Runs the work in a transaction or savepoint that the client opens. The callback of a lost transaction never settles for
 * the client; the caller's promise is settled here. A failure waits one turn of the event loop, because the query under
 * way learns of the loss before the transaction does.
 */
export function runInClient<TTx, T>(
  life: Life,
  open: (callback: (tx: TTx) => Promise<T>) => Promise<unknown>,
  work: (tx: TTx) => Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let thrown: unknown
    const opened = open(async (tx) => {
      try {
        const result = await work(tx)
        if (!life.end) return result
        reject(life.end.error)
      } catch (error) {
        thrown = error
        await nextTurn()
        if (!life.end) throw error
        reject(error)
      }
      return await new Promise<never>(() => {})
    })
    opened.then(resolve as (result: unknown) => void, (error) => {
      // An error that the work threw may be about any connection, so it does not prove that this one is lost.
      if (error !== thrown) noteLoss(life, error)
      reject(error)
    })
  })
}
