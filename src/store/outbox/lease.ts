// Leases events of emitIn() after their COMMIT, so that the immediate path can send them. Whatever another process holds,
// or has sent, is left to it. Like the save, it returns what each event has to follow.
import { sql } from '../../drivers/sql.ts'
import type { PreparedEvent } from '../../event/event.ts'
import { runInBackground } from '../database.ts'
import type { Lease, SavedEvent } from './outbox-store.ts'
import { encodeArray, isUnfinished, TIMES } from './rows.ts'
import { followsFunction, type SavedRow, toSaved } from './save.ts'
import type { StatementContext } from './statement.ts'

export function leaseStatement(context: StatementContext) {
  const { outbox, rules } = context
  const follows = followsFunction(rules.table)
  return async (events: readonly PreparedEvent[], lease: Lease): Promise<SavedEvent[]> => {
    const rows = await runInBackground<SavedRow>(
      context,
      'lease events',
      sql`
        with free as materialized (
          select o.id from ${outbox} o
          where o.id = any (${encodeArray(events.map(({ id }) => id))}::text::uuid[])
            and ${isUnfinished(sql`o`)} and o.lease_token is null and o.attempts = 0
            and o.available_at <= clock_timestamp()
          for update of o skip locked
        )
        update ${outbox} o set lease_token = ${lease.token}::text::uuid,
          worker_id = ${lease.workerId}::text, updated_at = clock_timestamp(),
          available_at = clock_timestamp() + ${lease.ms}::float8 * interval '1 ms'
        from free where o.id = free.id
        returning o.id::text, o.seq::text, ${TIMES},
          ${follows.name}(o.lane, o.seq, ${rules.deadLettersHold}::boolean)::text as follows`,
    )
    const byId = new Map(rows.map((row) => [row.id, row]))
    return events
      .flatMap((event) => {
        const row = byId.get(event.id)
        return row ? [toSaved(event, row)] : []
      })
      .toSorted((a, b) => a.event.seq - b.event.seq)
  }
}
