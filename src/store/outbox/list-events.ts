// One page of events, by id. No index serves every filter, so there are two ways, and both look at a limited number of rows:
//
// 1. What is not published is in partial indexes. If there is little of it, it is read and sorted, however long the history.
// 2. Everything else is read along the primary key, up to a number of rows. The page returns where to go on.
import { sql, type SQL } from '../../drivers/sql.ts'
import { run } from '../database.ts'
import type { BrowseStore, EventFilter, EventPage, PageRequest } from './browse-store.ts'
import { fieldsOf, idsOf, statusesOf } from './event-filter.ts'
import {
  hiddenLimit,
  isDeadIndexed,
  isFailedIndexed,
  isLaneIndexed,
  isScheduledIndexed,
} from './rows.ts'
import type { StatementContext } from './statement.ts'
import { BROWSED_COLUMNS, summaryColumns, type SummaryRow, toSummary } from './summary.ts'

/** Rows of one partial index. */
const LITTLE = 5_000

/** Rows along the primary key, for one page. */
const LOOKED_AT = 50_000

/** If errors are compared, which takes longer. */
const LOOKED_AT_ERRORS = 5_000

type PageRow = { [Field in keyof SummaryRow]: SummaryRow[Field] | null }

export function listEventsStatement(context: StatementContext): BrowseStore['list'] {
  return async (filter, page) => {
    const isSorted = { newest: sql`order by o.id desc`, oldest: sql`order by o.id` }[page.order]
    return (
      (await listUnpublished(context, filter, page, isSorted)) ??
      (await listByKey(context, filter, page, isSorted))
    )
  }
}

/** null: this way does not fit the filter. */
async function listUnpublished(
  { db, outbox, rules }: StatementContext,
  filter: EventFilter,
  page: PageRequest,
  isSorted: SQL,
): Promise<EventPage | null> {
  const parts = partsOf(filter)
  if (!parts) return null
  const most = hiddenLimit(LITTLE + 1)
  const read = parts.map(({ isIn, by }, n) => {
    const part = sql.raw(String(n))
    return sql`(select ${part} as part, ${BROWSED_COLUMNS} from ${outbox} o where ${isIn} order by ${by} limit ${most})`
  })
  const rows = await run<PageRow & { isAll: string }>(
    db,
    'list unpublished events',
    sql`
      with looked as materialized (${sql.join(read, sql` union all `)}
      ), whole as materialized (
        select not exists (select from looked group by part having count(*) > ${LITTLE}::int) as is_all
      ), page as materialized (
        select ${summaryColumns(rules.table)} from looked o
        where (select is_all from whole) and ${idsOf(filter, page)} and ${fieldsOf(filter)}
        ${isSorted} limit ${page.limit + 1}::int
      )
      select p.*, w.is_all::text as "isAll" from whole w left join page p on true`,
  )
  if (rows[0]!.isAll !== 'true') return null
  return toPage(rows, page, null)
}

/** The partial indexes that hold all events of these statuses; null if there are none for them. */
function partsOf(filter: EventFilter): { isIn: SQL; by: SQL }[] | null {
  const statuses = statusesOf(filter)
  if (!statuses || statuses.includes('published') || filter.id !== undefined) return null
  const parts: { isIn: SQL; by: SQL }[] = []
  const o = sql`o`
  if (statuses.includes('scheduled'))
    parts.push({ isIn: isScheduledIndexed(o), by: sql`o.deliver_at` })
  if (statuses.includes('pending')) parts.push({ isIn: isLaneIndexed(o), by: sql`o.lane, o.seq` })
  else if (statuses.includes('failed')) parts.push({ isIn: isFailedIndexed(o), by: sql`o.seq` })
  if (statuses.includes('dead_letter')) parts.push({ isIn: isDeadIndexed(o), by: sql`o.seq` })
  return parts.length > 0 ? parts : null
}

async function listByKey(
  { db, outbox, rules }: StatementContext,
  filter: EventFilter,
  page: PageRequest,
  isSorted: SQL,
): Promise<EventPage> {
  const most = filter.error === undefined ? LOOKED_AT : LOOKED_AT_ERRORS
  const range = sql`from ${outbox} o where ${idsOf(filter, page)} ${isSorted}`
  const rows = await run<PageRow & { stoppedAt: string | null }>(
    db,
    'list events',
    sql`
      with page as materialized (
        select ${summaryColumns(rules.table)} from (select ${BROWSED_COLUMNS} ${range} limit ${hiddenLimit(most)}) o
        where ${fieldsOf(filter)} ${isSorted} limit ${page.limit + 1}::int
      )
      select p.*, s.id::text as "stoppedAt" from (select case when (select count(*) from page) <= ${page.limit}::int
        then (select o.id ${range} offset ${hiddenLimit(most - 1)} limit 1) end as id
      ) s left join page p on true`,
  )
  return toPage(rows, page, rows[0]!.stoppedAt)
}

/** One more event than the page takes shows that there are more. Without it, the rest begins where the look stopped. */
function toPage(
  rows: readonly PageRow[],
  { limit, order }: PageRequest,
  stoppedAt: string | null,
): EventPage {
  const found = rows.filter((row): row is SummaryRow => row.id !== null).map(toSummary)
  const direction = order === 'newest' ? -1 : 1
  found.sort((one, other) => (one.id < other.id ? -direction : direction))
  const events = found.slice(0, limit)
  return { events, next: found.length > limit ? events.at(-1)!.id : stoppedAt }
}
