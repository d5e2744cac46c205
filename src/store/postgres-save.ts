// The save: the last statement before COMMIT. What an event has to follow is asked of a function that the migrations
// make, as Postgres keeps its plan; planning took longer than all the rest. Who keeps the table in migrations of their
// own may not have it, and then the question is part of the statement. Both answer the same: the conformance suite of
// stores runs on either.
import type { Executor } from '../drivers/driver.ts'
import type { PreparedEvent } from '../events.ts'
import { hasSqlState, run, UNDEFINED_TABLE } from './database.ts'
import { type AnyNumber, DEAD_LETTER_COPY, OCCURRED_AT, PENDING, toDate } from './rows.ts'
import { sql, type SQL } from './sql.ts'
import type { Lease, SavedEvent, StoreRules } from './store.ts'
import { lockName, qualifiedName } from './table-name.ts'

const STEP = 'save events'
const FUNCTION_ARGUMENTS = 'text, text, bigint, uuid, boolean'

/** What a function says that cannot run: a table or function that is not there, a name that may mean two things. */
const CANNOT_RUN = [UNDEFINED_TABLE, '42883', '42702']

interface SavedRow {
  id: string
  seq: string
  after: string | null
  occurredAt: AnyNumber
}

export function saveStatement(rules: StoreRules) {
  const outbox = qualifiedName(rules.table)
  const afterFunction = qualifiedName({ ...rules.table, name: `${rules.table.name}_after` })
  let isCallable: boolean | null = null

  // Asked once, by the first unit of work, in its own transaction: a call of what is not there would break that one.
  async function findFunction(tx: Executor): Promise<boolean> {
    const signature = `${afterFunction.text}(${FUNCTION_ARGUMENTS})`
    const [found] = await run<{ callable: string | null }>(
      tx,
      'look for a function',
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

  function askFunction(): SQL {
    return sql`${afterFunction}(o.aggregate_type, o.aggregate_id, o.seq, o.lease_token,
      ${rules.deadLettersHold}::boolean)::text`
  }

  // `after` sees what this statement's snapshot sees: committed earlier rows, not ours; one in other hands outranks
  // them all. A snapshot that is older than the lock on the aggregate, ours or the application's, cannot tell, so above
  // read committed the claim has to.
  function askInline(): SQL {
    const earlier = sql`p.aggregate_type = o.aggregate_type
      and p.aggregate_id = o.aggregate_id and p.seq < o.seq and p.status <> 'published'`
    const held = rules.deadLettersHold
      ? sql`when exists (select 1 from ${outbox} p where ${earlier} and p.status = 'dead_letter'
            and p.aggregate_type <> ${DEAD_LETTER_COPY}::text) then 'infinity'`
      : sql``
    return sql`(case when o.lease_token is null then null
      when current_setting('transaction_isolation') <> 'read committed' then 'infinity' ${held}
      when exists (select 1 from ${outbox} p where ${earlier} and p.status = ${PENDING}
        and p.lease_token is distinct from o.lease_token) then 'infinity'
      else (select max(p.seq) from ${outbox} p
        where ${earlier} and p.status = ${PENDING})::float8 end)::text`
  }

  // clock_timestamp(), never now(): now() is when the transaction began, and a unit of work may be
  // older than its events' lease by the time it saves them (rule 2). The ORDER BY makes `seq` follow the
  // order of emit.
  function insert(events: readonly PreparedEvent[], lease: Lease, after: SQL): SQL {
    const token = lease.ms > 0 ? lease.token : null
    return sql`
      insert into ${outbox} as o (id, aggregate_type, aggregate_id, event_type, topic, payload,
        headers, max_attempts, available_at, lease_token, worker_id, occurred_at)
      select e.id, e.aggregate_type, e.aggregate_id, e.event_type, e.topic, e.payload,
        e.headers, e.max_attempts, clock_timestamp() + ${lease.ms}::float8 * interval '1 ms',
        ${token}::text::uuid, ${lease.workerId}::text,
        coalesce(to_timestamp(e.occurred_ms / 1000), clock_timestamp())
      from ${rowsOf(events)} e order by e.n
      returning o.id::text, o.seq::text, ${OCCURRED_AT}, ${after} as after`
  }

  /** What of the statement depends on data is in the function, so that one plan does for all that is saved. */
  async function chooseAfter(tx: Executor) {
    if (!rules.inOrder) return { after: sql`null::text`, prepare: true, asksFunction: false }
    const asksFunction = (isCallable ??= await findFunction(tx))
    const after = asksFunction ? askFunction() : askInline()
    return { after, prepare: asksFunction, asksFunction }
  }

  // A function that is there and cannot run, as its schema has another name now, would be found again and fail every
  // save: this store goes on without it. Without it a missing table is missing indeed, and whoever makes the table may
  // make the function with it. After any other failure of it the next save looks whether it may still be called.
  function learnFrom(error: unknown, asksFunction: boolean) {
    if (asksFunction) isCallable = hasSqlState(error, ...CANNOT_RUN) ? false : null
    else if (hasSqlState(error, UNDEFINED_TABLE)) isCallable = null
  }

  return async function save(
    tx: Executor,
    events: readonly PreparedEvent[],
    lease: Lease,
  ): Promise<SavedEvent[]> {
    if (rules.lockKeys) await lockAggregates(tx, events)
    const { after, prepare, asksFunction } = await chooseAfter(tx)
    const rows = await run<SavedRow>(tx, STEP, insert(events, lease, after), { prepare }).catch(
      (error: unknown) => {
        learnFrom(error, asksFunction)
        throw error
      },
    )
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

// Most units of work emit one event, for which parameters are read in half the time that JSON takes. The payload null
// comes out of JSON as no value at all.
function rowsOf(events: readonly PreparedEvent[]): SQL {
  const [one] = events
  if (!one || events.length > 1) {
    return sql`(select n, id, aggregate_type, aggregate_id, event_type, topic,
        coalesce(payload, 'null') as payload, headers, max_attempts, occurred_ms
      from json_to_recordset(${encodeRows(events)}::text::json) as r(n int, id uuid,
        aggregate_type text, aggregate_id text, event_type text, topic text, payload json,
        headers json, max_attempts int, occurred_ms float8))`
  }
  return sql`(select 0 as n, ${one.id}::text::uuid as id, ${one.aggregateType}::text as aggregate_type,
      ${one.aggregateId}::text as aggregate_id, ${one.type}::text as event_type,
      ${one.topic}::text as topic, ${one.payload}::text::json as payload,
      ${JSON.stringify(one.headers)}::text::json as headers, ${one.maxAttempts}::int as max_attempts,
      ${one.occurredAt?.getTime() ?? null}::float8 as occurred_ms)`
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
