// A table as it is after a busy week: a long history, and among it what failed, what is dead and what waits.
import type postgres from 'postgres'

export type Crowd = {
  readonly published: number
  readonly failed: number
  readonly dead: number
  readonly pending: number
}

/** Spread over the last seven days, the pending ones over the last minute. */
export async function crowd(sql: postgres.Sql, counts: Crowd): Promise<void> {
  const { published, failed, dead, pending } = counts
  const total = published + failed + dead + pending
  // Which row is what: the rare ones are strewn over the history by a stride.
  await sql.unsafe(`
    insert into outbox (id, lane, aggregate_type, aggregate_id, event_type, topic, payload, headers, status, attempts,
      max_attempts, available_at, occurred_at, created_at, updated_at, published_at, last_attempt_at, last_error)
    select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3)
        || '8' || substr(md5(n::text), 4, 15))::uuid,
      n, 'order', 'order-' || n % 50000, (array['OrderPlaced', 'OrderPaid', 'OrderShipped', 'OrderCancelled'])[1 + n % 4],
      (array['orders', 'payments', 'parcels'])[1 + n % 3], '{"total": 42, "note": "something of a usual length"}', '{}',
      status, case when status in ('failed', 'dead_letter') then 3 else 0 end, 10,
      case when status = 'failed' then now() + interval '1 hour' else at end, at, at, at,
      case when status = 'published' then at + interval '8 ms' end,
      case when status in ('failed', 'dead_letter') then at end,
      case when status in ('failed', 'dead_letter') then (array['order ' || n || ' has no address',
        'connect ECONNREFUSED 10.0.0.' || n % 250 || ':9092', 'payload of ' || md5(n::text) || ' was refused at '
        || at::text])[1 + n % 3] end
    from (
      select n, case when n > ${total - pending} then 'pending' when n % ${Math.floor(total / failed)} = 0 then 'failed'
          when n % ${Math.floor(total / dead)} = 1 then 'dead_letter' else 'published' end as status,
        case when n > ${total - pending} then now() - (${total} - n) * interval '1 min' / ${pending}
          else now() - interval '1 min' - (${total} - n) * interval '7 days' / ${total} end as at
      from generate_series(1, ${total}) n
    ) rows`)
  await sql.unsafe('vacuum analyze outbox')
}
