// Which scheduled events a statement reads, from the time in horizon.ts on.
import { sql, type SQL } from '../../drivers/sql.ts'
import type { Horizon } from './horizon.ts'
import { isScheduledIndexed } from './rows.ts'

export const isScheduledSince = (row: SQL, horizon: Horizon) =>
  sql`${isScheduledIndexed(row)}
    and ${row}.deliver_at >= to_timestamp(${String(horizon.scheduledSince)}::text::float8 / 1000)`

/** Scheduled for a time that has come. */
export const isOverdue = (row: SQL, horizon: Horizon) =>
  sql`${isScheduledSince(row, horizon)} and ${row}.deliver_at <= now()`
