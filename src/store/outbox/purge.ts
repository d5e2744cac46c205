// Deletes one batch of old rows. Ids begin with the time at which they were made, so the primary key finds old rows
// without a separate index. The time in the row, by the database's clock, decides. If an application's clock is ahead,
// its rows are deleted later, never sooner.
import { sql, type SQL } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import { lockName, type TableName } from '../table-name.ts'
import type { Purged, PurgeRequest } from './outbox-store.ts'
import type { AnyNumber } from './rows.ts'
import type { StatementContext } from './statement.ts'

export function purgeStatement(context: StatementContext) {
  const { outbox, rules } = context
  return async ({ status, olderThanMs, limit, after }: PurgeRequest): Promise<Purged> => {
    const endedAt = status === 'published' ? sql`o.published_at` : sql`o.last_attempt_at`
    const [purged] = await runInBackground<{ deleted: AnyNumber; last: string | null }>(
      context,
      'delete old rows',
      sql`
        with turn as materialized (
          select ${takeTurn(rules.table)} as mine
        ), old as materialized (
          select o.id from ${outbox} o
          where (select mine from turn) and o.status = ${sql.raw(`'${status}'`)}
            and ${endedAt} < now() - ${ageOf(olderThanMs)} and o.id < ${bornBefore(olderThanMs)}
            and o.id > coalesce(${after}::text::uuid, '00000000-0000-0000-0000-000000000000')
          order by o.id limit ${limit}::int for update skip locked
        ), gone as (
          delete from ${outbox} o using old where o.id = old.id returning o.id
        )
        select count(*)::int as deleted, (select g.id::text from gone g order by g.id desc limit 1) as last
        from gone`,
    )
    return { deleted: Number(purged!.deleted), last: purged!.last }
  }
}

/** Whether it is this instance's turn, until its transaction ends. */
export function takeTurn(table: TableName): SQL {
  return sql`pg_try_advisory_xact_lock(hashtextextended(${`${lockName(table)} purge`}::text, 0))`
}

export function ageOf(ms: number): SQL {
  return sql`${ms}::float8 * interval '1 ms'`
}

/** The first id that is younger than this. */
export function bornBefore(ageMs: number): SQL {
  return firstIdAt(sql`now() - ${ageOf(ageMs)}`)
}

/** The first id that can be made at a time. */
export function firstIdAt(time: SQL): SQL {
  return sql`(lpad(to_hex((extract(epoch from ${time}) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid`
}
