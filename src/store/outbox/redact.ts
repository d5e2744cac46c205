// Replaces the payload of one page of events, along the primary key, as no index leads to the published events of an
// aggregate. What still has to go out is left, unless it is asked for and no process holds it; the row is re-checked, as a
// retry may just have made a dead letter pending. A copy of a dead letter counts as the event that it is a copy of.
import { sql } from '../../drivers/sql.ts'
import { run } from '../database.ts'
import type { EventFilter } from './browse-store.ts'
import { fieldsOf, idsOf } from './event-filter.ts'
import {
  type AnyNumber,
  DEAD_LETTER_COPY,
  encodeArray,
  hiddenLimit,
  isUnfinished,
  OUT_OF_HANDS,
} from './rows.ts'
import type { StatementContext } from './statement.ts'

/** What becomes of an event. */
export interface Redaction {
  /** JSON text. */
  readonly payload: string
  /** The names of headers to remove. */
  readonly headers: readonly string[]
  /** Whether events are included that still have to go out. */
  readonly unsent: boolean
}

export interface RedactedPage {
  readonly redacted: number
  /** Those that match and were left. */
  readonly left: number
  /** Where the next page begins; null: there is none. */
  readonly last: string | null
}

/** Rows along the primary key. */
const LOOKED_AT = 5_000

/** The error in the header of a copy may quote the payload, as last_error may. */
const ERROR_HEADER = 'dead-letter-error'

export function redactStatement({ db, outbox }: StatementContext) {
  const isCopy = sql`o.aggregate_type = ${DEAD_LETTER_COPY}::text`
  const isFree = sql`(o.lease_token is null or o.available_at <= clock_timestamp())`
  // What rests or was put off would look leased.
  const isDue = sql`${isUnfinished(sql`o`)} and o.available_at <= clock_timestamp()`
  return async (
    filter: EventFilter,
    { payload, headers, unsent }: Redaction,
    after: string | null,
  ): Promise<RedactedPage> => {
    const isOver = sql`o.status in ('published', 'dead_letter')`
    const isWaiting = sql`(o.status = 'scheduled' or ${isUnfinished(sql`o`)})`
    const mayChange = unsent ? sql`(${isOver} or (${isWaiting} and ${isFree}))` : isOver
    const [page] = await run<{ matched: AnyNumber; redacted: AnyNumber; last: string | null }>(
      db,
      'redact events',
      sql`
        with looked as materialized (
          select o.id, o.event_type, o.aggregate_type, o.aggregate_id, o.topic,
            case when ${isCopy} then o.headers end as headers
          from ${outbox} o where ${idsOf(filter, { after, order: 'oldest', limit: LOOKED_AT })}
          order by o.id limit ${hiddenLimit(LOOKED_AT)}
        ), originals as (
          select o.id, o.aggregate_id, coalesce(o.headers->>'dead-letter-type', o.event_type) as event_type,
            coalesce(o.headers->>'dead-letter-aggregate-type', o.aggregate_type) as aggregate_type,
            coalesce(o.headers->>'dead-letter-topic', o.topic) as topic
          from looked o
        ), matched as materialized (
          select o.id from originals o where ${fieldsOf(filter)}
        ), chosen as materialized (
          select o.id from ${outbox} o
          where o.id = any ((select array_agg(id) from matched)::uuid[]) and ${mayChange}
          order by o.id for update
        ), redacted as (
          update ${outbox} o set payload = ${payload}::text::json,
            headers = coalesce((select json_object_agg(h.key, h.value) from json_each(o.headers) h
              where h.key <> all (${encodeArray([ERROR_HEADER, ...headers])}::text::text[])), '{}'),
            last_error = case when o.last_error is not null then 'redacted' end,
            lease_token = case when ${isDue} then ${OUT_OF_HANDS} end, updated_at = clock_timestamp()
          from chosen where o.id = chosen.id returning o.id
        )
        select (select count(*) from matched)::int as matched, (select count(*) from redacted)::int as redacted,
          (select id from looked order by id offset ${hiddenLimit(LOOKED_AT - 1)} limit 1)::text as last`,
    )
    const [matched, redacted] = [Number(page!.matched), Number(page!.redacted)]
    return { redacted, left: matched - redacted, last: page!.last }
  }
}
