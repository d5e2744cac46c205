// Moves one page of unfinished events from one topic to another. Like a retry, it changes an event only while no process
// holds it, and re-checks that on the row itself. The event becomes due now: reads of a topic start a few seconds ago
// (horizon.ts), and would miss an older time. It keeps its lane, and so its place among the events that are moved with it.
import { sql } from '../../drivers/sql.ts'
import { run } from '../database.ts'
import { type AnyNumber, hiddenLimit, isDueIndexed, isUnfinished, OUT_OF_HANDS } from './rows.ts'
import type { StatementContext } from './statement.ts'

/** A time with its microseconds, and the seq: where a page ended. */
export interface ReroutePlace {
  readonly at: string
  readonly seq: number
}

export interface Rerouted {
  readonly moved: number
  /** Those of the page that a process holds. */
  readonly held: number
  /** null: there are no more. */
  readonly last: ReroutePlace | null
}

interface PageRow {
  found: AnyNumber
  moved: AnyNumber
  at: string | null
  seq: string | null
}

const FIRST: ReroutePlace = { at: '-infinity', seq: 0 }

export function rerouteStatement({ db, outbox }: StatementContext) {
  return async (
    { from, to }: { readonly from: string; readonly to: string },
    { limit, after }: { readonly limit: number; readonly after: ReroutePlace | null },
  ): Promise<Rerouted> => {
    const { at, seq } = after ?? FIRST
    const [page] = await run<PageRow>(
      db,
      'reroute events',
      sql`
        with found as materialized (
          select o.id, o.available_at, o.seq from ${outbox} o
          where ${isDueIndexed(sql`o`)} and o.topic = ${from}::text
            and (o.available_at, o.seq) > (${at}::text::timestamptz, ${seq}::float8::bigint)
          order by o.available_at, o.seq limit ${hiddenLimit(limit)}
        ), chosen as materialized (
          select o.id from ${outbox} o
          where o.id = any ((select array_agg(id) from found)::uuid[]) and o.topic = ${from}::text
            and ${isUnfinished(sql`o`)} and (o.lease_token is null or o.available_at <= clock_timestamp())
          order by o.seq for update
        ), moved as (
          update ${outbox} o set topic = ${to}::text, available_at = clock_timestamp(), lease_token = ${OUT_OF_HANDS},
            updated_at = clock_timestamp()
          from chosen where o.id = chosen.id returning o.id
        )
        select (select count(*) from found)::int as found, (select count(*) from moved)::int as moved,
          to_char(last.available_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at, last.seq::text as seq
        from (select 1) one left join lateral (
          select available_at, seq from found order by available_at desc, seq desc limit 1
        ) last on true`,
    )
    const [found, moved] = [Number(page!.found), Number(page!.moved)]
    const isLast = found < limit || page!.at === null
    return {
      moved,
      held: found - moved,
      last: isLast ? null : { at: page!.at!, seq: Number(page!.seq) },
    }
  }
}
