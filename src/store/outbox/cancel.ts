// Cancels a scheduled event: deletes its row, in the transaction that it is called in, unless a claim has taken the row
// before. The lock on the row decides between the two. A claim skips a row that is locked, and this waits for a claim to
// end and then reads the row again. A claim writes its worker's name on the row, which is empty until then and is never
// emptied again.
import { randomUUID } from 'node:crypto'
import type { Executor } from '../../drivers/driver.ts'
import { sql, type SQL } from '../../drivers/sql.ts'
import { noTransaction } from '../../errors.ts'
import { run } from '../database.ts'
import { MARK } from './save.ts'
import type { AnyNumber } from './rows.ts'
import type { StatementContext } from './statement.ts'

/** In a transaction of its own, or in one that is known to be open. Returns whether it was cancelled. */
export function cancelStatement({ db, outbox }: StatementContext) {
  return async (id: string, tx: Executor = db): Promise<boolean> => {
    const rows = await run(tx, 'cancel an event', deleteOf(outbox, id))
    return rows.length > 0
  }
}

/** In a transaction that the application began, if it is open: see saveInStatement(). */
export function cancelInStatement({ outbox }: StatementContext) {
  return async (tx: Executor, id: string): Promise<boolean> => {
    const mark = randomUUID()
    const isOpen = sql`coalesce(current_setting(${MARK}::text, true) = ${mark}::text, false)`
    const [, [row]] = await Promise.all([
      run(tx, 'mark the transaction', sql`select set_config(${MARK}::text, ${mark}::text, true)`),
      run<Record<'open' | 'cancelled', AnyNumber>>(
        tx,
        'cancel an event',
        sql`
          with cancelled as (${deleteOf(outbox, id, sql`and ${isOpen}`)})
          select (${isOpen})::int as open, (select count(*)::int from cancelled) as cancelled`,
      ),
    ])
    const { open, cancelled } = row!
    if (Number(open) === 0) throw noTransaction()
    return Number(cancelled) > 0
  }
}

function deleteOf(outbox: SQL, id: string, condition = sql``): SQL {
  return sql`delete from ${outbox} o where o.id = ${id}::text::uuid and o.deliver_at is not null
    and o.worker_id is null and o.status in ('scheduled', 'pending') ${condition} returning o.id::text`
}
