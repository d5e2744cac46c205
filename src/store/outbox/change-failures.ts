// Retries or discards one page of failures, and wakes what a claim has put off behind them. What is retried keeps its id
// and its place in its lane. An event that rests is changed only while no process holds it: the claim and the record
// re-check the row, and so does this, so that one of the two has it.
import { sql, type SQL } from '../../drivers/sql.ts'
import { run } from '../database.ts'
import { isFailureIndexed, matching } from './failure-filter.ts'
import type {
  FailurePage,
  FailuresChanged,
  FailuresOfKind,
  FailureStatus,
  FailureStore,
} from './failure-store.ts'
import { type AnyNumber, hiddenLimit } from './rows.ts'
import type { StatementContext } from './statement.ts'
import { wakeLanes } from './wake.ts'

/** What is done to `chosen`, and what that wakes in the lanes of `changed`, if anything. */
type Change = Record<FailureStatus, { readonly act: SQL; readonly wake: SQL | null }>

export function retryFailuresStatement(context: StatementContext): FailureStore['retry'] {
  const { outbox } = context
  return change(context, 'retry what failed', {
    failed: {
      // What is due already keeps its place among what is due.
      act: sql`update ${outbox} o set available_at = least(o.available_at, clock_timestamp()),
        updated_at = clock_timestamp() from chosen where o.id = chosen.id`,
      // The claim that takes it returns its lane, if something waits there.
      wake: null,
    },
    dead_letter: {
      act: sql`update ${outbox} o set status = 'pending', attempts = 0, available_at = clock_timestamp(),
        lease_token = null, updated_at = clock_timestamp() from chosen where o.id = chosen.id`,
      wake: wakeHeld(context),
    },
  })
}

export function discardFailuresStatement(context: StatementContext): FailureStore['discard'] {
  const { outbox } = context
  const act = sql`delete from ${outbox} o using chosen where o.id = chosen.id`
  return change(context, 'discard what failed', {
    failed: { act, wake: wakeLanes(context, CHANGED_LANES, WOKEN) },
    dead_letter: { act, wake: wakeHeld(context) },
  })
}

/** What waits behind dead letters. Without knowing that they hold others, as in a tool, only what has been put off. */
function wakeHeld(context: StatementContext): SQL {
  const which = context.rules.deadLettersHold ? sql`true` : sql`p.available_at > now()`
  return wakeLanes(context, CHANGED_LANES, WOKEN, which)
}

const CHANGED_LANES = sql`select distinct lane from changed`

/** How many events of a lane are woken. */
const WOKEN = 100

/** A page looks at this many failures, whether they match or not, so that no statement takes long. */
const LOOKED_AT = 10_000

const IS_FREE = sql`(o.lease_token is null or o.available_at <= clock_timestamp())`

function change({ db, outbox }: StatementContext, step: string, changes: Change) {
  return async (
    filter: FailuresOfKind,
    { limit, afterSeq }: FailurePage,
  ): Promise<FailuresChanged> => {
    const { status, id } = filter
    const { act, wake } = changes[status]
    const isLater = sql`o.seq > ${afterSeq}::float8::bigint`
    const end =
      id === undefined
        ? sql`select o.seq from ${outbox} o where ${isFailureIndexed(status)} and ${isLater}
            order by o.seq offset ${hiddenLimit(LOOKED_AT - 1)} limit 1`
        : sql`select null::bigint as seq`
    const [changed] = await run<{ count: AnyNumber; lastSeq: string | null }>(
      db,
      step,
      sql`
        with looked_up_to as materialized (${end}
        ), chosen as materialized (
          select o.id from ${outbox} o
          where ${matching(filter)} and ${isLater} ${status === 'failed' ? sql`and ${IS_FREE}` : sql``}
            and o.seq <= coalesce((select seq from looked_up_to), ${Number.MAX_SAFE_INTEGER}::float8::bigint)
          order by o.seq limit ${hiddenLimit(limit)} for update
        ), changed as (${act} returning o.seq, o.lane) ${wake ? sql`, woken as (${wake})` : sql``}
        select count(*)::int as count, (case when count(*) >= ${limit}::int then max(seq)
          else (select seq from looked_up_to) end)::text as "lastSeq" from changed`,
    )
    const { count, lastSeq } = changed!
    return { count: Number(count), lastSeq: lastSeq === null ? null : Number(lastSeq) }
  }
}
