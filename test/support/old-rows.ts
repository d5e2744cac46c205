// Rows that could have been saved days ago, for tests of what becomes of them.
import type postgres from 'postgres'

export type OldRows = {
  readonly count: number
  readonly status: string
  readonly days: number
  /** @default 'outbox' */
  readonly table?: string
}

/** Rows of that age, with ids that were made at that time. What is scheduled is due in an hour. */
export async function insertOldRows(
  sql: postgres.Sql,
  { count, status, days, table = 'outbox' }: OldRows,
): Promise<void> {
  await sql`
    insert into ${sql(table)} (id, lane, aggregate_type, aggregate_id, event_type, topic, payload, headers,
      status, max_attempts, available_at, occurred_at, created_at, published_at, last_attempt_at,
      deliver_at)
    select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0')
        || '7' || substr(md5(random()::text), 1, 19))::uuid,
      n, 'order', n, 'OrderCompleted', 'order', '1', '{}', ${status}, 10, at, at, at, at, at,
      case when ${status} = 'scheduled' then now() + interval '1 h' end
    from generate_series(1, ${count}::int) n, (select now() - ${days}::int * interval '1 day' as at) t`
}
