// Records that an event is being handled: the first statement in the transaction of the effects. Row and effects
// commit or roll back together, so a crash leaves both or neither.
import type { Executor } from '../../drivers/driver.ts'
import { sql } from '../../drivers/sql.ts'
import { OutboxOptionsError } from '../../errors.ts'
import { run } from '../database.ts'
import { lockName } from '../table-name.ts'
import type { InboxContext } from './statement.ts'

/** The outcome of a delivery: it is the first, there was one before, or a later event was handled before it. */
export type Recorded = 'first' | 'duplicate' | 'late'

/** The place of an event in the order of its aggregate and lane. */
export interface Place {
  readonly aggregateType: string
  readonly aggregateId: string
  /** null: the event is in order with the events of its aggregate that have no lane either. */
  readonly lane: number | null
  readonly seq: number
}

export function recordStatement(context: InboxContext) {
  const record = recordUnordered(context)
  const recordInOrder = recordOrdered(context)
  return (tx: Executor, id: string, place: Place | null): Promise<Recorded> =>
    place ? recordInOrder(tx, id, place) : record(tx, id)
}

// The unique index makes a second delivery wait until the first one has committed or rolled back. It is a duplicate if
// the first committed, and takes its place if the first rolled back.
function recordUnordered({ inbox, rules: { consumer } }: InboxContext) {
  return async (tx: Executor, id: string): Promise<Recorded> => {
    const rows = await run(
      tx,
      'record the event',
      sql`
        insert into ${inbox} (consumer, event_id) values (${consumer}::text, ${id}::text)
        on conflict do nothing returning 1`,
    )
    return rows.length > 0 ? 'first' : 'duplicate'
  }
}

// The lock always comes before the row. Otherwise a transaction that handles several events of a lane could wait for
// one that has inserted the next of them and waits for the lock. If the insert finds a conflict although no later
// event was seen, another delivery of this event committed after the statement took its snapshot.
function recordOrdered(context: InboxContext) {
  const { inbox, rules } = context
  const { consumer } = rules
  const lock = lockStatement(context)
  return async (tx: Executor, id: string, place: Place): Promise<Recorded> => {
    const { aggregateType, aggregateId, lane, seq } = place
    // Not `is not distinct from`, for which Postgres does not use the index.
    const inLane = lane === null ? sql`i.lane is null` : sql`i.lane = ${String(lane)}::text::bigint`
    await lock(tx, place)
    const [row] = await run<{ recorded: Recorded }>(
      tx,
      'record the event',
      sql`
        with later as materialized (
          select 1 from ${inbox} i where i.consumer = ${consumer}::text
            and i.aggregate_type = ${aggregateType}::text and i.aggregate_id = ${aggregateId}::text
            and ${inLane} and i.seq > ${String(seq)}::text::bigint limit 1
        ), first as (
          insert into ${inbox} (consumer, event_id, aggregate_type, aggregate_id, lane, seq)
          select ${consumer}::text, ${id}::text, ${aggregateType}::text, ${aggregateId}::text,
            ${lane === null ? null : String(lane)}::text::bigint, ${String(seq)}::text::bigint
          where not exists (select 1 from later)
          on conflict do nothing returning 1
        )
        select case when exists (select 1 from first) then 'first'
          when exists (select 1 from later) and not exists (
            select 1 from ${inbox} i where i.consumer = ${consumer}::text and i.event_id = ${id}::text
          ) then 'late' else 'duplicate' end as recorded`,
    )
    return row!.recorded
  }
}

// A separate statement, so that the next one sees what was committed while this one waited. Above read committed it
// would not, because the whole transaction uses one snapshot.
function lockStatement({ rules: { table, consumer } }: InboxContext) {
  return async (tx: Executor, { aggregateType, aggregateId, lane }: Place): Promise<void> => {
    const key = `${lockName(table)} ${JSON.stringify([consumer, aggregateType, aggregateId, lane])}`
    const [row] = await run<{ isolation: string }>(
      tx,
      'lock the lane',
      sql`select pg_advisory_xact_lock(hashtextextended(${key}::text, 0))::text,
        current_setting('transaction_isolation') as isolation`,
    )
    if (row!.isolation === 'read committed') return
    throw new OutboxOptionsError(
      `order: 'aggregate' cannot be kept in a ${row!.isolation} transaction, which does not see what was handled while it waited; use the isolation level read committed`,
    )
  }
}
