// The transaction as the work sees it: closed when the work has ended. A forgotten statement that slipped in behind
// the confirmation and failed would turn COMMIT into a rollback that reports success, and the broker would be told
// that an event was handled whose effects are gone. So it would be if a nested transaction were still running.
import type { OpenTransaction } from '../drivers/driver.ts'
import { OutboxError, overError } from '../errors.ts'
import { settle } from '../open-unit.ts'

export async function runGuarded<T>(
  open: OpenTransaction<unknown>,
  work: (tx: unknown) => Promise<T> | T,
  useOuter: () => void = () => {},
): Promise<T> {
  let isOver = false
  let running = 0
  const use = () => {
    useOuter()
    if (isOver) throw overError('the transaction was used')
  }
  const savepoint = async (nested: (tx: unknown) => unknown) => {
    running += 1
    try {
      return await open.savepoint((inner) => runGuarded(inner, nested, use))
    } finally {
      running -= 1
    }
  }
  try {
    const result = await settle(work(open.guarded({ use, savepoint })))
    if (running > 0) throw overError('a nested transaction was still running')
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
