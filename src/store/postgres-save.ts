// The save: the last statement before COMMIT. Where the function of the migrations is there, it is called, as Postgres
// keeps the plan of what is inside; planning took twice as long as executing. Who keeps the table in migrations of
// their own may not have it, and then the statement goes out as it is. Both are the same to all that comes after:
// the conformance suite of stores runs on either.
import type { Executor } from '../drivers/driver.ts'
import type { PreparedEvent } from '../events.ts'
import { run } from './database.ts'
import { type AnyNumber, DEAD_LETTER_COPY, OCCURRED_AT, PENDING, toDate } from './rows.ts'
import { sql } from './sql.ts'
import type { Lease, SavedEvent, StoreRules } from './store.ts'
import { lockName, qualifiedName } from './table-name.ts'

const STEP = 'save events'
const FUNCTION_ARGUMENTS = 'text, float8, uuid, text, boolean, boolean'

interface SavedRow {
  id: string
  seq: string
  after: string | null
  occurredAt: AnyNumber
}

export function saveStatement(rules: StoreRules) {
  const outbox = qualifiedName(rules.table)
  const saveFunction = qualifiedName({ ...rules.table, name: `${rules.table.name}_save` })
  let isCallable: boolean | null = null

  // Asked once, by the first unit of work, in its own transaction: a call of what is not there would break that one.
  async function findFunction(tx: Executor): Promise<boolean> {
    const signature = `${saveFunction.text}(${FUNCTION_ARGUMENTS})`
    const [found] = await run<{ callable: string | null }>(
      tx,
      'look for the function that saves',
      sql`select has_function_privilege(to_regprocedure(${signature}::text), 'execute')::text as callable`,
    )
    return found?.callable === 'true'
  }

  // One after another, in the order of their hashes: two units of work cannot wait for each other here,
  // and behind it there is only the INSERT and COMMIT. It has to be a statement of its own, so that the
  // INSERT sees what was committed while this waited.
  async function lockAggregates(tx: Executor, events: readonly PreparedEvent[]) {
    const keys = JSON.stringify(events.map((event) => [event.aggregateType, event.aggregateId]))
    await run(
      tx,
      'lock aggregates',
      sql`
        select pg_advisory_xact_lock(k.hash) from (
          select distinct hashtextextended(${lockName(rules.table)}::text || key::text, 0) as hash
          from json_array_elements(${keys}::text::json) as key order by 1
        ) k`,
    )
  }

  async function callFunction(
    tx: Executor,
    events: readonly PreparedEvent[],
    { ms, token, workerId }: Lease,
  ) {
    const call = sql`select id, seq, "occurredAt", after from ${saveFunction}(${encodeRows(events)}::text,
      ${ms}::float8, ${ms > 0 ? token : null}::text::uuid, ${workerId}::text,
      ${rules.inOrder}::boolean, ${rules.deadLettersHold}::boolean)`
    try {
      return await run<SavedRow>(tx, STEP, call, { prepare: true })
    } catch (error) {
      // Perhaps it is not there any more: the next one looks again.
      isCallable = null
      throw error
    }
  }

  // clock_timestamp(), never now(): now() is when the transaction began, and a unit of work may be
  // older than its events' lease by the time it saves them (rule 2). The ORDER BY makes `seq` follow the
  // order of emit. The payload null comes out of the record as no value at all. `after` sees what this
  // statement's snapshot sees: committed earlier rows, not ours; one in other hands outranks them all.
  // A snapshot that is older than the lock on the aggregate, ours or the application's, cannot tell, so above
  // read committed the claim has to.
  async function insert(
    tx: Executor,
    events: readonly PreparedEvent[],
    { ms, token, workerId }: Lease,
  ) {
    const earlier = sql`p.aggregate_type = o.aggregate_type
      and p.aggregate_id = o.aggregate_id and p.seq < o.seq and p.status <> 'published'`
    const held = rules.deadLettersHold
      ? sql`when exists (select 1 from ${outbox} p where ${earlier} and p.status = 'dead_letter'
            and p.aggregate_type <> ${DEAD_LETTER_COPY}::text) then 'infinity'`
      : sql``
    const after = rules.inOrder
      ? sql`(case when o.lease_token is null then null
          when current_setting('transaction_isolation') <> 'read committed' then 'infinity' ${held}
          when exists (select 1 from ${outbox} p where ${earlier} and p.status = ${PENDING}
            and p.lease_token is distinct from o.lease_token) then 'infinity'
          else (select max(p.seq) from ${outbox} p
            where ${earlier} and p.status = ${PENDING})::float8 end)::text`
      : sql`null`
    const statement = sql`
      insert into ${outbox} as o (id, aggregate_type, aggregate_id, event_type, topic, payload,
        headers, max_attempts, available_at, lease_token, worker_id, occurred_at)
      select e.id, e.aggregate_type, e.aggregate_id, e.event_type, e.topic,
        coalesce(e.payload, 'null'),
        e.headers, e.max_attempts, clock_timestamp() + ${ms}::float8 * interval '1 ms',
        ${ms > 0 ? token : null}::text::uuid, ${workerId}::text,
        coalesce(to_timestamp(e.occurred_ms / 1000), clock_timestamp())
      from json_to_recordset(${encodeRows(events)}::text::json) as e(n int, id uuid,
        aggregate_type text, aggregate_id text, event_type text, topic text, payload json,
        headers json, max_attempts int, occurred_ms float8)
      order by e.n
      returning o.id::text, o.seq::text, ${OCCURRED_AT}, ${after} as after`
    return await run<SavedRow>(tx, STEP, statement)
  }

  return async function save(
    tx: Executor,
    events: readonly PreparedEvent[],
    lease: Lease,
  ): Promise<SavedEvent[]> {
    if (rules.lockKeys) await lockAggregates(tx, events)
    isCallable ??= await findFunction(tx)
    const rows = isCallable
      ? await callFunction(tx, events, lease)
      : await insert(tx, events, lease)
    const byId = new Map(rows.map((row) => [row.id, row]))
    return events.map((event): SavedEvent => {
      const row = byId.get(event.id)!
      return {
        ...event,
        seq: Number(row.seq),
        after: row.after === null ? null : Number(row.after),
        occurredAt: toDate(row.occurredAt),
        attempts: 0,
      }
    })
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
