// Every SQL statement of the outbox, one function each. Lists travel as one text parameter (JSON or an
// array literal) that the statement casts: the text of a statement never changes with the number of
// rows, and every driver binds a string in the same way. No session state: it works behind PgBouncer.
import { sql } from 'drizzle-orm'
import type { OutboxEvent, PreparedEvent } from '../events.ts'
import { type DrizzleDatabase, type Executor, run } from './database.ts'
import { migrate } from './migrate.ts'
import type { ClaimRequest, FailureRecord, Lease, LeaseRef, SavedEvent, Store } from './store.ts'
import { qualifiedName, type TableName } from './table-name.ts'

const OCCURRED_AT = sql`(extract(epoch from o.occurred_at) * 1000)::float8 as "occurredAt"`

export function postgresStore(db: DrizzleDatabase, table: TableName): Store<Executor> {
  const outbox = qualifiedName(table)

  // clock_timestamp(), never now(): now() is when the transaction began, and a unit of work may be
  // older than its events' lease by the time it saves them (rule 2). The ORDER BY makes `seq` follow the
  // order of emit. The payload null comes out of the record as no value at all. `after` sees what this
  // statement's snapshot sees: committed earlier rows, not ours; one in other hands outranks them all.
  async function save(tx: Executor, events: readonly PreparedEvent[], lease: Lease) {
    const predecessors = sql`p.aggregate_type = o.aggregate_type
      and p.aggregate_id = o.aggregate_id and p.seq < o.seq and p.status = 'pending'`
    const rows = await run<{ id: string; seq: string; after: string | null; occurredAt: number }>(
      tx,
      'save events',
      sql`
        insert into ${outbox} as o (id, aggregate_type, aggregate_id, event_type, topic, payload,
          headers, max_attempts, available_at, lease_token, worker_id, occurred_at)
        select e.id, e.aggregate_type, e.aggregate_id, e.event_type, e.topic,
          coalesce(e.payload, 'null'),
          e.headers, e.max_attempts, clock_timestamp() + ${lease.ms}::float8 * interval '1 ms',
          ${lease.ms > 0 ? lease.token : null}::text::uuid, ${lease.workerId}::text,
          coalesce(to_timestamp(e.occurred_ms / 1000), clock_timestamp())
        from json_to_recordset(${encodeRows(events)}::text::json) as e(n int, id uuid,
          aggregate_type text, aggregate_id text, event_type text, topic text, payload json,
          headers json, max_attempts int, occurred_ms float8)
        order by e.n
        returning o.id, o.seq::text, ${OCCURRED_AT},
          (case when o.lease_token is null then null
            when exists (select 1 from ${outbox} p where ${predecessors}
              and p.lease_token is distinct from o.lease_token) then 'infinity'
            else (select max(p.seq) from ${outbox} p where ${predecessors})::float8 end)::text as after`,
    )
    const byId = new Map(rows.map((row) => [row.id, row]))
    return events.map((event): SavedEvent => {
      const row = byId.get(event.id)!
      return {
        ...event,
        seq: Number(row.seq),
        after: row.after === null ? null : Number(row.after),
        occurredAt: new Date(row.occurredAt),
        attempts: 0,
      }
    })
  }

  // Comparisons take now(), which is this short transaction's own start: unlike clock_timestamp() it
  // can be looked up in the index. Order: a row is a candidate only if the head of its aggregate is due
  // before it, so a head that rests or has nowhere to go keeps its followers back, and one that is due
  // comes first. Only the head is looked at, by one index probe: comparing with all earlier siblings made
  // a claim quadratic in the backlog of an aggregate (10 s at 5,000 rows; 0.1 s this way). Of what could be
  // locked, only runs without a gap are taken, as SKIP LOCKED may have left a head to somebody else.
  async function claim({ lease, limit, exceptTopics, inOrder }: ClaimRequest) {
    const excepted = sql`${encodeArray(exceptTopics)}::text::text[]`
    const sameAggregate = sql`p.aggregate_type = o.aggregate_type
      and p.aggregate_id = o.aggregate_id and p.status = 'pending'`
    const candidate = inOrder
      ? sql`and o.available_at >= (
          select case when p.topic = any (${excepted}) then 'infinity' else p.available_at end
          from ${outbox} p where ${sameAggregate} order by p.seq limit 1)`
      : sql``
    const unbroken = inOrder
      ? sql`where not exists (select 1 from ${outbox} p where ${sameAggregate}
          and p.seq < o.seq and p.id not in (select id from locked))`
      : sql``
    const rows = await run<ClaimedRow>(
      db,
      'claim events',
      sql`
        with locked as materialized (
          select o.id, o.seq, o.aggregate_type, o.aggregate_id from ${outbox} o
          where o.status = 'pending' and o.available_at <= now()
            and o.topic <> all (${excepted}) ${candidate}
          order by o.available_at, o.seq limit ${limit}::int for update skip locked
        )
        update ${outbox} o set lease_token = ${lease.token}::text::uuid,
          worker_id = ${lease.workerId}::text, updated_at = clock_timestamp(),
          available_at = clock_timestamp() + ${lease.ms}::float8 * interval '1 ms'
        where o.id in (select o.id from locked o ${unbroken})
        returning o.id, o.seq::text, o.event_type as type, o.aggregate_type as "aggregateType",
          o.aggregate_id as "aggregateId", o.topic, o.payload::text, o.headers::text, ${OCCURRED_AT},
          o.attempts, o.max_attempts as "maxAttempts"`,
    )
    return rows.map(decodeRow).toSorted((a, b) => a.seq - b.seq)
  }

  // SKIP LOCKED: a row that somebody is writing to right now is about to be settled, or lost. Waiting for
  // it while holding the others would keep their outcomes from being recorded.
  async function renew(leases: readonly LeaseRef[], ms: number) {
    const rows = await run<{ id: string }>(
      db,
      'renew leases',
      sql`
        with held as materialized (
          select o.id from ${outbox} o
          join json_to_recordset(${JSON.stringify(leases)}::text::json) as e(id uuid, token uuid)
            on o.id = e.id and o.lease_token = e.token
          where o.status = 'pending' for update of o skip locked
        )
        update ${outbox} o set available_at = clock_timestamp() + ${ms}::float8 * interval '1 ms',
          updated_at = clock_timestamp()
        from held where o.id = held.id returning o.id`,
    )
    return new Set(rows.map((row) => row.id))
  }

  async function settlePublished(ids: readonly string[]) {
    await run(
      db,
      'record what was published',
      sql`
        update ${outbox} set status = 'published', published_at = clock_timestamp(),
          last_attempt_at = clock_timestamp(), updated_at = clock_timestamp(), last_error = null,
          lease_token = null
        where id = any (${encodeArray(ids)}::text::uuid[]) and status <> 'published'`,
    )
  }

  // A token is good for one failure: clearing it keeps a second, late one from counting again.
  async function settleFailed(failures: readonly FailureRecord[]) {
    const rows = await run<{ id: string }>(
      db,
      'record what failed',
      sql`
        update ${outbox} o set status = e.status, attempts = o.attempts + e.counts::int,
          available_at = clock_timestamp() + e."delayMs" * interval '1 ms', lease_token = null,
          last_error = coalesce(e.error, o.last_error), updated_at = clock_timestamp(),
          last_attempt_at = case when e.error is null then o.last_attempt_at
            else clock_timestamp() end
        from json_to_recordset(${JSON.stringify(failures)}::text::json)
          as e(id uuid, token uuid, status text, counts boolean, "delayMs" float8, error text)
        where o.id = e.id and o.lease_token = e.token and o.status = 'pending'
        returning o.id`,
    )
    return new Set(rows.map((row) => row.id))
  }

  async function verify() {
    await run(
      db,
      `look for the outbox table ${table.schema}.${table.name}`,
      sql`select id, seq, payload, headers, status, attempts, max_attempts, available_at,
        lease_token, worker_id from ${outbox} limit 0`,
    )
  }

  return {
    save,
    claim,
    renew,
    settlePublished,
    settleFailed,
    verify,
    migrate: () => migrate(db, table),
  }
}

interface ClaimedRow extends Omit<OutboxEvent, 'seq' | 'headers' | 'occurredAt'> {
  seq: string
  headers: string
  occurredAt: number
}

function decodeRow(row: ClaimedRow): OutboxEvent {
  return {
    ...row,
    seq: Number(row.seq),
    headers: JSON.parse(row.headers) as Record<string, string>,
    occurredAt: new Date(row.occurredAt),
  }
}

// The payload is JSON already: it goes in as it is instead of being quoted and parsed once more.
function encodeRows(events: readonly PreparedEvent[]): string {
  const rows = events.map((event, n) => {
    const columns = JSON.stringify({
      n,
      id: event.id,
      aggregate_type: event.aggregateType,
      aggregate_id: event.aggregateId,
      event_type: event.type,
      topic: event.topic,
      headers: event.headers,
      max_attempts: event.maxAttempts,
      occurred_ms: event.occurredAt?.getTime() ?? null,
    })
    return `${columns.slice(0, -1)},"payload":${event.payload}}`
  })
  return `[${rows.join(',')}]`
}

function encodeArray(values: readonly string[]): string {
  const items = values.map((value) => `"${value.replaceAll(/["\\]/g, '\\$&')}"`)
  return `{${items.join(',')}}`
}
