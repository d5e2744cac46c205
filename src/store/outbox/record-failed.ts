// Records failures and gives rows back, each only while its lease still holds (rule 6). A token is valid for one
// failure: it is cleared, so that a second, late failure does not count again.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import type { FailureRecord, LeaseRef } from './outbox-store.ts'
import { DEAD_LETTER_COPY, DEAD_LETTERED, isOneOf, isUnfinished } from './rows.ts'
import type { StatementContext } from './statement.ts'

export function recordFailedStatement(context: StatementContext) {
  const { outbox, rules } = context
  // The copy of a dead letter is a separate event, of an aggregate type in which dead letters hold nothing back. Copies
  // are in the order of their events.
  const copies = sql`, copies as (
    insert into ${outbox} (id, lane, aggregate_type, aggregate_id, event_type, topic, payload, headers,
      max_attempts, available_at, occurred_at)
    select "copyId", "copyLane", ${DEAD_LETTER_COPY}::text, aggregate_id, ${DEAD_LETTERED}::text,
      ${rules.deadLetterTopic}::text,
      payload, (headers::jsonb || jsonb_build_object('dead-letter-id', id,
        'dead-letter-type', event_type, 'dead-letter-aggregate-type', aggregate_type,
        'dead-letter-topic', topic, 'dead-letter-error', last_error))::json,
      max_attempts, clock_timestamp(), occurred_at
    from failed where "copyId" is not null order by seq)`

  // The first statement has cleared the token. A row that another process has taken over meanwhile has a new one.
  const recordedBefore = (repeated: readonly FailureRecord[]) => sql`
    union all
    select o.id::text, e.token::text from ${outbox} o
    join json_to_recordset(${JSON.stringify(repeated)}::text::json) as e(id uuid, token uuid,
      status text, error text) on o.id = e.id
    where ${isOneOf(repeated.map(({ id }) => id))} and o.lease_token is null and o.status = coalesce(e.status, o.status) and o.last_error = e.error`

  return async (failures: readonly FailureRecord[]): Promise<ReadonlyMap<string, string>> => {
    const repeated = failures.filter(({ isRepeated }) => isRepeated)
    const rows = await runInBackground<LeaseRef>(
      context,
      'record what failed',
      sql`
        with failed as (
          update ${outbox} o set status = coalesce(e.status, o.status), attempts = o.attempts + e.counts::int,
            available_at = clock_timestamp() + e."delayMs" * interval '1 ms', lease_token = null,
            last_error = coalesce(e.error, o.last_error), updated_at = clock_timestamp(),
            last_attempt_at = case when e.error is null then o.last_attempt_at
              else clock_timestamp() end
          from json_to_recordset(${JSON.stringify(failures)}::text::json) as e(id uuid, token uuid,
            status text, counts boolean, "delayMs" float8, error text, "copyId" uuid,
            "copyLane" bigint)
          where ${isOneOf(failures.map(({ id }) => id))} and o.id = e.id and o.lease_token = e.token
            and ${isUnfinished(sql`o`)}
          returning o.*, e.token, e."copyId", e."copyLane"
        ) ${rules.deadLetterTopic === null ? sql`` : copies}
        select id::text, token::text from failed
        ${repeated.length > 0 ? recordedBefore(repeated) : sql``}`,
    )
    return new Map(rows.map(({ id, token }) => [id, token]))
  }
}
