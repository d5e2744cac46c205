// The transaction as the work sees it: closed when the work has ended. A forgotten statement that slipped in behind
// the confirmation and failed would turn COMMIT into a rollback that reports success, and the broker would be told
// that an event was handled whose effects are gone.
import type { OpenTransaction } from '../drivers/driver.ts'
import { overError } from '../errors.ts'
import { settle } from '../open-unit.ts'

export async function runGuarded<T>(
  open: OpenTransaction<unknown>,
  work: (tx: unknown) => Promise<T> | T,
): Promise<T> {
  let isOver = false
  const use = () => {
    if (isOver) throw overError('the transaction was used')
  }
  const guard = (scope: OpenTransaction<unknown>): unknown =>
    scope.guarded({
      use,
      savepoint: (nested) => scope.savepoint(async (inner) => settle(nested(guard(inner)))),
    })
  try {
    return await settle(work(guard(open)))
  } finally {
    isOver = true
  }
}
