// Confirms the effects: the last statement before COMMIT. After a statement has failed and its error was caught,
// Postgres turns COMMIT into a rollback, and some drivers report that as success: the broker would get an ack for an
// event whose effects are gone. In such a transaction this statement fails.
import type { Executor } from '../../drivers/driver.ts'
import { sql } from '../../drivers/sql.ts'
import { run } from '../database.ts'

export async function confirm(tx: Executor): Promise<void> {
  await run(tx, 'confirm the effects', sql`select 1`)
}
