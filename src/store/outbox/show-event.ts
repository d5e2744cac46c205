// One event with everything that is known about it, and what it waits for.
import { sql } from '../../drivers/sql.ts'
import { run } from '../database.ts'
import type { BrowseStore, EventAhead } from './browse-store.ts'
import {
  type AnyNumber,
  DEAD_LETTER_COPY,
  isDeadLaneIndexed,
  isLaneIndexed,
  isUnfinished,
  toDate,
} from './rows.ts'
import type { StatementContext } from './statement.ts'
import { summaryColumns, type SummaryRow, toDateOrNull, toSummary } from './summary.ts'

/** How many events ahead of it are listed. */
const AHEAD = 10

interface DetailRow extends SummaryRow {
  lane: string
  occurredAt: AnyNumber
  updatedAt: AnyNumber
  lastAttemptAt: AnyNumber | null
  payload: string
  headers: string
  behind: string
}

export function showEventStatement({ db, outbox, rules }: StatementContext): BrowseStore['show'] {
  const p = sql`p`
  const ahead = sql`from ${outbox} p where p.lane = o.lane and p.seq < o.seq and ${isUnfinished(sql`o`)}`
  const first = sql`order by p.seq limit ${sql.raw(String(AHEAD))}`
  const dead = rules.deadLettersHold
    ? sql`union all (select p.id, p.status, p.seq ${ahead} and ${isDeadLaneIndexed(p)}
        and p.aggregate_type <> ${DEAD_LETTER_COPY}::text ${first})`
    : sql``
  return async (id) => {
    const [row] = await run<DetailRow>(
      db,
      'show an event',
      sql`
        select ${summaryColumns(rules.table)}, o.lane::text, date_part('epoch', o.occurred_at) * 1000 as "occurredAt",
          date_part('epoch', o.updated_at) * 1000 as "updatedAt",
          date_part('epoch', o.last_attempt_at) * 1000 as "lastAttemptAt", o.payload::text, o.headers::text,
          array_to_json(array(
            select json_build_object('id', b.id, 'status', b.status, 'seq', b.seq) from (
              (select p.id, p.status, p.seq ${ahead} and ${isLaneIndexed(p)} ${first}) ${dead}
            ) b order by b.seq limit ${AHEAD}::int
          ))::text as behind
        from ${outbox} o where o.id = ${id}::text::uuid`,
    )
    if (!row) return null
    return {
      ...toSummary(row),
      lane: Number(row.lane),
      occurredAt: toDate(row.occurredAt),
      updatedAt: toDate(row.updatedAt),
      lastAttemptAt: toDateOrNull(row.lastAttemptAt),
      payload: row.payload,
      headers: JSON.parse(row.headers) as Record<string, string>,
      behind: JSON.parse(row.behind) as EventAhead[],
    }
  }
}
