// Checks that the tables and the function are there, work, and are not too new for this version. start() runs this check,
// after migrate() if it is set.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import { StoreError } from '../../errors.ts'
import { raceTimeout } from '../../runtime/race-timeout.ts'
import { newerMigrations } from '../migrate.ts'
import { isDenied } from '../database.ts'
import { instancesName } from './instances.ts'
import { pausesName } from './pauses.ts'
import { followsFunction } from './save.ts'
import type { StatementContext } from './statement.ts'

export function verifyStatement(context: StatementContext) {
  const { outbox, rules } = context
  /** Returns the migrations of a newer version that were applied here. */
  return async (): Promise<readonly string[]> => {
    await runInBackground(
      context,
      'look for the outbox table',
      sql`select id, seq, lane, payload, headers, status, attempts, max_attempts, available_at,
        lease_token, worker_id, deliver_at, cdc_occurred_at from ${outbox} limit 0`,
    )
    const { name, signature } = followsFunction(rules.table)
    await runInBackground(
      context,
      'call the function of the save',
      sql`select ${name}(0::bigint, 0::bigint, false)`,
    ).catch((cause) => {
      if (!isAboutFunction(cause)) throw cause
      throw new StoreError(
        'TABLE_MISSING',
        `the function ${signature}, which finds the events that a new event has to follow, is missing or cannot run; call migrate(), or, if the table is in your own migrations, run drizzle/0001_follows.sql of this package with the names of your table, and again when you rename its schema`,
        { cause },
      )
    })
    const [pauses, instances] = [pausesName(rules.table), instancesName(rules.table)]
    await runInBackground(
      context,
      'look for the tables of pauses and instances',
      sql`select p.topic, i.seen_at, i.history from ${pauses} p cross join ${instances} i limit 0`,
    ).catch((cause) => {
      if (!(cause instanceof StoreError && cause.code === 'TABLE_MISSING')) throw cause
      throw new StoreError(
        'TABLE_MISSING',
        `one of the tables ${pauses.text} and ${instances.text} is missing or lacks a column; call migrate(), or, if the tables are in your own migrations, add outboxPausesTable() and outboxInstancesTable() to your schema, or run drizzle/0002_control.sql and drizzle/0006_history.sql of this package with the names of your table`,
        { cause },
      )
    })
    const newer = newerMigrations(context.db, 'outbox', rules.table)
    const found = await raceTimeout(newer, context.statementTimeoutMs)
    return found === 'late' ? [] : found
  }
}

/** Whether it is missing, cannot find its table, or may not be called; a lost connection does not show that. */
function isAboutFunction(error: unknown): error is StoreError {
  return error instanceof StoreError && (error.code === 'TABLE_MISSING' || isDenied(error))
}
