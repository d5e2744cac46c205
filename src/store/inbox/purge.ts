// Deletes one batch of old rows of the consumer, in the order in which they were handled. A round continues
// where its last batch ended, past rows that another transaction has locked.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import type { Purged } from '../outbox/outbox-store.ts'
import { lockName } from '../table-name.ts'
import type { InboxContext } from './statement.ts'

export function purgeStatement(context: InboxContext) {
  const { inbox, rules } = context
  const { table, consumer, retentionMs } = rules
  return async (limit: number, after: string | null): Promise<Purged> => {
    const [purged] = await runInBackground<{ deleted: unknown; last: string | null }>(
      context,
      'delete old rows',
      sql`
        with turn as materialized (
          select pg_try_advisory_xact_lock(
            hashtextextended(${`${lockName(table)} purge ${consumer}`}::text, 0)) as mine
        ), old as materialized (
          select i.ctid from ${inbox} i
          where (select mine from turn) and i.consumer = ${consumer}::text
            and i.handled_at < now() - ${retentionMs}::float8 * interval '1 ms'
            and i.handled_at >= coalesce(to_timestamp(${after}::text::float8), '-infinity')
          order by i.handled_at limit ${limit}::int for update skip locked
        ), gone as (
          delete from ${inbox} i where i.ctid = any(array(select ctid from old)) returning i.handled_at
        )
        select count(*)::int as deleted, extract(epoch from max(handled_at))::float8::text as last from gone`,
    )
    return { deleted: Number(purged!.deleted), last: purged!.last }
  }
}
