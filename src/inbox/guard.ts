// The transaction as the work sees it: closed when the work has ended. A forgotten statement that slipped in behind
// the confirmation and failed would turn COMMIT into a rollback that reports success, and the broker would be told
// that an event was handled whose effects are gone. So it would be if a nested transaction were still running.
import type { OpenTransaction } from '../drivers/driver.ts'
import { OutboxError, overError } from '../errors.ts'
import { Nesting } from '../nesting.ts'
import { settle } from '../open-unit.ts'

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
    const result = await settle(work(open.guarded({ use, savepoint })))
    nesting.check()
    return result
  } finally {
    isOver = true
  }
}

/** Transactions in which an event is being handled, whichever inbox does it. */
const busy = new WeakSet<object>()

// Savepoints of one transaction are a stack: the one that began first takes those that began later with it when it
// rolls back, and an event beside it would be called handled that was undone.
export async function runAlone<T>(tx: object, run: () => Promise<T>): Promise<T> {
  if (busy.has(tx)) {
    throw new OutboxError(
      'NESTED',
      'onceIn() was called while another event is being handled in the same transaction; await that one first, or inside its work use the tx that the work is given',
    )
  }
  busy.add(tx)
  try {
    return await run()
  } finally {
    busy.delete(tx)
  }
}
