// The table of a shop on a bad morning: a topic that lost its rights, invoices that are too large, templates that are unknown, and
// one instance that was killed.
import { randomUUID } from 'node:crypto'
import type postgres from 'postgres'
import { HISTORY_MINUTES, type InstanceHistory } from '../../../src/store/outbox/control-store.ts'

export async function fillShop(sql: postgres.Sql): Promise<void> {
  await fill(sql, 24_000, PUBLISHED)
  await fill(sql, 1_912, WAITING_PAYMENTS)
  await fill(sql, 31, LARGE_INVOICES)
  await fill(sql, 6, UNKNOWN_TEMPLATES)
  await fill(sql, 18, BUSY_MAILER)
  await sql`analyze outbox`
  await makeWait(sql)
  const circuit = (forMs: number) => ({
    publisher: 'kafka',
    topic: 'payments',
    forMs,
    error: 'KafkaJSProtocolError: Not authorized to access topics: [payments]',
  })
  await addInstance(sql, 'shop-6f9c-2xk8p', 2, [circuit(738_000)])
  await addInstance(sql, 'shop-6f9c-9vq4d', 6, [circuit(736_000)])
  await addInstance(sql, 'shop-6f9c-tz7lm', 184, [])
}

/** An event that waits for an earlier one of its aggregate. */
export async function findExample(sql: postgres.Sql): Promise<string> {
  const [row] = await sql<{ id: string }[]>`
    select id from outbox where event_type = 'email.requested' and aggregate_id = '48213' order by seq desc limit 1`
  return row!.id
}

/** Columns of the n-th of `total` rows, in SQL. */
interface Kind {
  readonly type: string
  readonly aggregate: string
  readonly topic: string
  readonly status: string
  /** How long ago it was saved. */
  readonly ago: string
  readonly attempts: number
  readonly error: string
  readonly dueIn: string
}

const NEVER = `interval '0'`
const PUBLISHED: Kind = {
  type: `(array['order.placed', 'order.paid', 'shipment.dispatched', 'email.requested', 'stock.reserved'])[1 + n % 5]`,
  aggregate: `(array['order', 'order', 'shipment', 'customer', 'product'])[1 + n % 5]`,
  topic: `(array['orders', 'orders', 'shipments', 'emails', 'stock'])[1 + n % 5]`,
  status: 'published',
  ago: `interval '23 hours' * (total - n) / total + interval '2 s'`,
  attempts: 1,
  error: 'null',
  dueIn: NEVER,
}
const WAITING_PAYMENTS: Kind = {
  ...PUBLISHED,
  type: `(array['payment.captured', 'payment.authorized', 'payment.refunded'])[1 + n % 3]`,
  aggregate: `'payment'`,
  topic: `'payments'`,
  status: 'pending',
  ago: `interval '740 s' * (total - n) / total`,
  attempts: 0,
  error: `case n when 1 then 'Not authorized to access topics: [payments]' end`,
}
const LARGE_INVOICES: Kind = {
  ...PUBLISHED,
  type: `'invoice.created'`,
  aggregate: `'invoice'`,
  topic: `'invoices'`,
  status: 'dead_letter',
  ago: `interval '26 hours' * ((total - n)::float8 / total) ^ 4 + interval '70 s'`,
  error: `'The message is ' || 1049000 + n * 1237 || ' bytes, larger than the 1048576 that the topic takes'`,
}
const UNKNOWN_TEMPLATES: Kind = {
  ...LARGE_INVOICES,
  type: `'email.requested'`,
  aggregate: `'customer'`,
  topic: `'emails'`,
  ago: `interval '3 hours' * ((total - n)::float8 / total) ^ 3 + interval '4 min'`,
  attempts: 10,
  error: `'No such template: winter-sale-' || n`,
}
const BUSY_MAILER: Kind = {
  ...UNKNOWN_TEMPLATES,
  status: 'failed',
  ago: `interval '20 min' * (total - n) / total + interval '30 s'`,
  attempts: 3,
  error: `'429 Too Many Requests from mail.example, retry after 60 s'`,
  dueIn: `interval '20 s' + n * interval '7 s'`,
}

async function fill(sql: postgres.Sql, total: number, kind: Kind): Promise<void> {
  const { type, aggregate, topic, status, ago, attempts, error, dueIn } = kind
  const isTried = attempts > 0
  await sql.unsafe(`
    insert into outbox (id, lane, aggregate_type, aggregate_id, event_type, topic, payload, headers, status, attempts,
      max_attempts, available_at, occurred_at, created_at, updated_at, published_at, last_attempt_at, last_error, worker_id)
    select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(hash, 1, 3) || '9'
        || substr(hash, 4, 15))::uuid,
      ('x' || substr(hash, 1, 12))::bit(48)::bigint, ${aggregate}, (48000 + n * 7919 % 51000)::text, ${type}, ${topic},
      json_build_object('orderId', 48000 + n, 'total', json_build_object('amount', 4990, 'currency', 'EUR')),
      json_build_object('tenant', 'eu-1', 'traceparent', '00-' || hash || '-00f067aa0ba902b7-01'),
      '${status}', ${attempts}, 10, case '${status}' when 'failed' then now() + ${dueIn} else at end, at, at,
      at + interval '9 ms', case '${status}' when 'published' then at + interval '9 ms' * (1 + n % 4) end,
      ${isTried ? `at + interval '8 ms'` : 'null'}, ${error}, 'shop-6f9c-2xk8p'
    from (
      select n, total, now() - (${ago}) as at, md5('${status}${topic.replaceAll("'", '')}' || n) as hash
      from (select n, ${total} as total from generate_series(1, ${total}) n) numbers
    ) rows`)
}

/** Two e-mails to one customer: the second one waits for the first. */
async function makeWait(sql: postgres.Sql): Promise<void> {
  await sql`
    with two as (
      select id, row_number() over (order by seq) as n from outbox
      where event_type = 'email.requested' and status = 'failed' order by seq limit 2
    )
    update outbox set lane = 424242, aggregate_id = '48213',
      attempts = case two.n when 1 then 3 else 1 end
    from two where outbox.id = two.id`
}

async function addInstance(
  sql: postgres.Sql,
  name: string,
  secondsAgo: number,
  circuits: readonly object[],
): Promise<void> {
  const publishers = [
    { name: 'kafka', topics: ['invoices', 'orders', 'payments', 'shipments', 'stock'] },
    { name: 'handlers', topics: ['emails'] },
  ]
  const report = {
    inFlight: secondsAgo > 60 ? 0 : 4,
    circuits,
    published: { immediate: 81_200, fallback: 912 },
    failed: 640,
    dead: 12,
    duplicates: 1,
    latency: [],
  }
  await sql`
    insert into outbox_instances (id, worker_id, host, pid, version, started_at, seen_at, publishers, immediate, poller,
      settings, report, history, history_at)
    values (${randomUUID()}, ${name}, ${name}, 1, '0.1.0', now() - interval '5 h',
      now() - ${secondsAgo}::int * interval '1 s', ${JSON.stringify(publishers)}::text::json, true, true, '{}',
      ${JSON.stringify(report)}::text::json, ${JSON.stringify(HISTORY)}::text::json,
      now() - ${secondsAgo}::int * interval '1 s')`
}

/** Three calm hours. */
const HISTORY: InstanceHistory = {
  topics: ['emails', 'invoices', 'orders', 'payments', 'shipments', 'stock'],
  lastBeganMsAgo: 60_000,
  minutes: Array.from({ length: HISTORY_MINUTES }, (_, minute) => ({
    sent: [90, 20, 380, 160, 120, 150].map(
      (mean, topic) => [topic, Math.round(mean + (mean / 3) * Math.sin(minute / 9)), 2, 0] as const,
    ),
    took: [3, 500, 4, 380, 5, 40],
  })),
}
