// Retries or discards one page of dead letters, and wakes what a claim has put off behind them. A retried dead letter keeps
// its id and its place in its lane.
import { sql, type SQL } from '../../drivers/sql.ts'
import { run } from '../database.ts'
import { matching } from './dead-letter-filter.ts'
import type { DeadLetterFilter, DeadLetterPage, DeadLettersChanged } from './outbox-store.ts'
import type { AnyNumber } from './rows.ts'
import type { StatementContext } from './statement.ts'
import { wakeLanes } from './wake.ts'

export function retryDeadLettersStatement(context: StatementContext) {
  const { outbox } = context
  return change(
    context,
    'retry dead letters',
    sql`update ${outbox} o set status = 'pending', attempts = 0, available_at = clock_timestamp(),
      lease_token = null, updated_at = clock_timestamp() from chosen where o.id = chosen.id`,
  )
}

export function discardDeadLettersStatement(context: StatementContext) {
  const { outbox } = context
  return change(
    context,
    'discard dead letters',
    sql`delete from ${outbox} o using chosen where o.id = chosen.id`,
  )
}

/** How many events of a lane are woken. */
const WOKEN = 100

function change(context: StatementContext, step: string, act: SQL) {
  const { db, outbox, rules } = context
  const wake = wakeLanes(context, sql`select distinct lane from changed`, WOKEN)
  const woken = rules.deadLettersHold ? sql`, woken as (${wake})` : sql``
  return async (
    filter: DeadLetterFilter,
    { limit, afterSeq }: DeadLetterPage,
  ): Promise<DeadLettersChanged> => {
    const [changed] = await run<{ count: AnyNumber; lastSeq: string | null }>(
      db,
      step,
      sql`
        with chosen as materialized (
          select o.id, o.seq from ${outbox} o
          where ${matching(filter)} and o.seq > ${afterSeq}::float8::bigint
          order by o.seq limit ${limit}::int for update
        ), changed as (${act} returning o.seq, o.lane) ${woken}
        select count(*)::int as count, max(seq)::text as "lastSeq" from changed`,
    )
    const { count, lastSeq } = changed!
    return { count: Number(count), lastSeq: lastSeq === null ? null : Number(lastSeq) }
  }
}
