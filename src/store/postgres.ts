// The SQL statements of the outbox, one function each; save, claim and upkeep have files beside this one. Lists
// travel as one text parameter (JSON or an array literal) that the statement casts: every driver binds a string in
// the same way, and the text of a statement is the same for any number of rows. Only the save has two, one of them for
// a single event. No session state: it works behind PgBouncer.
import type { Database, Executor } from '../drivers/driver.ts'
import { runWithin } from './database.ts'
import { migrate } from './migrate.ts'
import { claimStatement } from './postgres-claim.ts'
import { saveStatement } from './postgres-save.ts'
import { upkeepStatements } from './postgres-upkeep.ts'
import {
  DEAD_LETTER_COPY,
  type EventRow,
  encodeArray,
  PENDING,
  PUBLISHED,
  toEvent,
} from './rows.ts'
import { sql, type SQL } from './sql.ts'
import type { ClaimRequest, FailureRecord, LeaseRef, Store, StoreRules } from './store.ts'
import { qualifiedName } from './table-name.ts'

/** The type of the event that tells of a dead letter, on the dead-letter topic. */
const DEAD_LETTERED = 'DeadLettered'

export function postgresStore(db: Database<unknown>, rules: StoreRules): Store<Executor> {
  const outbox = qualifiedName(rules.table)
  const runHere = <Row>(step: string, query: SQL) =>
    runWithin<Row>(rules.statementTimeoutMs, db, step, query)

  async function claim(request: ClaimRequest) {
    const rows = await runHere<EventRow>('claim events', claimStatement(rules, request))
    return rows.map(toEvent).toSorted((a, b) => a.seq - b.seq)
  }

  // SKIP LOCKED: a row that somebody is writing to right now is about to be settled, or lost. Waiting for
  // it while holding the others would keep their outcomes from being recorded.
  async function renew(leases: readonly LeaseRef[], ms: number) {
    const rows = await runHere<LeaseRef>(
      'renew leases',
      sql`
        with held as materialized (
          select o.id from ${outbox} o
          join json_to_recordset(${JSON.stringify(leases)}::text::json) as e(id uuid, token uuid)
            on o.id = e.id and o.lease_token = e.token
          where o.status = ${PENDING} for update of o skip locked
        )
        update ${outbox} o set available_at = clock_timestamp() + ${ms}::float8 * interval '1 ms',
          updated_at = clock_timestamp()
        from held where o.id = held.id returning o.id::text, o.lease_token::text as token`,
    )
    return new Map(rows.map(({ id, token }) => [id, token]))
  }

  // The list comes out of a subquery, so that it is read once: where a renewal has touched a row in between,
  // Postgres looks at that row anew, and would read the whole list each time (16 s for 3,000 rows; 0.1 s this
  // way). A join with it is no better: one that begins with the rows, by statistics of a quiet time, took 5 s.
  async function settlePublished(ids: readonly string[]) {
    const acked = sql`o.id = any ((select ${encodeArray(ids)}::text::uuid[])::uuid[])`
    const rows = await runHere<{ id: string }>(
      'record what was published',
      rules.keepPublished
        ? sql`
        update ${outbox} o set status = 'published', published_at = clock_timestamp(),
          last_attempt_at = clock_timestamp(), updated_at = clock_timestamp(), last_error = null,
          lease_token = null
        where ${acked} and o.status <> ${PUBLISHED} returning o.id::text`
        : sql`delete from ${outbox} o where ${acked} returning o.id::text`,
    )
    return new Set(rows.map((row) => row.id))
  }

  // A token is good for one failure: clearing it keeps a second, late one from counting again. The copy of
  // a dead letter is an event of its own, of an aggregate in which nothing is held.
  async function settleFailed(failures: readonly FailureRecord[]) {
    const copies = sql`, copies as (
        insert into ${outbox} (id, aggregate_type, aggregate_id, event_type, topic, payload, headers,
          max_attempts, available_at, occurred_at)
        select "copyId", ${DEAD_LETTER_COPY}::text, aggregate_id, ${DEAD_LETTERED}::text,
          ${rules.deadLetterTopic}::text,
          payload, (headers::jsonb || jsonb_build_object('dead-letter-id', id,
            'dead-letter-type', event_type, 'dead-letter-aggregate-type', aggregate_type,
            'dead-letter-topic', topic, 'dead-letter-error', last_error))::json,
          max_attempts, clock_timestamp(), occurred_at
        from failed where "copyId" is not null)`
    const rows = await runHere<LeaseRef>(
      'record what failed',
      sql`
        with failed as (
          update ${outbox} o set status = e.status, attempts = o.attempts + e.counts::int,
            available_at = clock_timestamp() + e."delayMs" * interval '1 ms', lease_token = null,
            last_error = coalesce(e.error, o.last_error), updated_at = clock_timestamp(),
            last_attempt_at = case when e.error is null then o.last_attempt_at
              else clock_timestamp() end
          from json_to_recordset(${JSON.stringify(failures)}::text::json) as e(id uuid, token uuid,
            status text, counts boolean, "delayMs" float8, error text, "copyId" uuid)
          where o.id = e.id and o.lease_token = e.token and o.status = ${PENDING}
          returning o.*, e.token, e."copyId"
        ) ${rules.deadLetterTopic === null ? sql`` : copies}
        select id::text, token::text from failed`,
    )
    return new Map(rows.map(({ id, token }) => [id, token]))
  }

  async function verify() {
    await runHere(
      'look for the outbox table',
      sql`select id, seq, payload, headers, status, attempts, max_attempts, available_at,
        lease_token, worker_id from ${outbox} limit 0`,
    )
  }

  return {
    save: saveStatement(rules),
    claim,
    renew,
    settlePublished,
    settleFailed,
    ...upkeepStatements(db, rules),
    verify,
    migrate: () => migrate(db, 'outbox', rules.table),
  }
}
