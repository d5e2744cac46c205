// The transaction as the work sees it. It closes when the work ends. Otherwise a statement that was not awaited could
// run after the confirmation and fail: COMMIT would then roll back yet report success, and the broker would get an ack
// for an event whose effects are gone. A nested transaction that is still running could do the same.
import type { OpenTransaction } from '../drivers/driver.ts'
import { OutboxError, overError } from '../errors.ts'
import { Nesting } from '../unit-of-work/nesting.ts'
import { awaitAll } from '../unit-of-work/open-unit.ts'

export async function runGuarded<T>(
  open: OpenTransaction<unknown>,
  work: (tx: unknown) => Promise<T> | T,
  nesting = new Nesting(),
  useOuter: () => void = () => {},
): Promise<T> {
  let isOver = false
  const use = () => {
    useOuter()
    if (isOver) throw overError('the transaction was used')
  }
  const savepoint = (nested: (tx: unknown) => unknown) =>
    nesting.nest((level) => open.savepoint((inner) => runGuarded(inner, nested, level, use)))
  try {
    const result = await awaitAll(work(open.guarded({ use, savepoint })))
    nesting.check()
    return result
  } finally {
    isOver = true
  }
}

/** Transactions in which any inbox is handling an event. */
const busy = new WeakSet<object>()

// Savepoints of one transaction are a stack: one that rolls back also undoes those that began after it. An event that
// was handled at the same time would be reported as handled although its effects were undone.
export async function runAlone<T>(tx: object, run: () => Promise<T>): Promise<T> {
  if (busy.has(tx)) {
    throw new OutboxError(
      'NESTED',
      'onceIn() was called while another event was being handled in the same transaction; await that call first, or, inside its work, pass the tx that the work receives',
    )
  }
  busy.add(tx)
  try {
    return await run()
  } finally {
    busy.delete(tx)
  }
}
