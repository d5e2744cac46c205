// Scheduled events become due here: they turn from scheduled into pending, and from then on they are like any other event.
// Until then no index of unfinished events holds them, so a claim, a look and a count read none of them.
//
// The row gets the time of this statement as its place among what is due, not the time for which it was scheduled: nothing may
// appear below the horizon (horizon.ts). SKIP LOCKED: a row that is locked is being cancelled, or made due by another process.
import { sql } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import type { DueTopics } from './due-topics.ts'
import type { Due } from './outbox-store.ts'
import { type AnyNumber, hiddenLimit, isScheduledIndexed } from './rows.ts'
import { isOverdue } from './scheduled.ts'
import type { StatementContext } from './statement.ts'

/** One statement makes this many due. It takes 40 to 90 ms, for which a cancellation of one of them may have to wait. */
const MOST = 5_000

/** A look for the fallback, after what was scheduled for now has been made due. */
export function dueStatement(context: StatementContext, dueTopics: DueTopics) {
  const makeDue = makeDueStatement(context)
  // The pipelines of a process look at the same time, and each has to see what any of them made due. A look beside that
  // statement may not: the events are in their new place then, at a time later than that of the look.
  let making: ReturnType<typeof makeDue> | null = null
  let made = 0
  const make = () =>
    (making ??= makeDue().finally(() => {
      making = null
      made += 1
    }))
  return async (): Promise<Due> => {
    const madeBefore = made
    const { topics, scheduledInMs } = await dueTopics()
    const isDue = scheduledInMs !== null && scheduledInMs <= 0
    if (!isDue && making === null && made === madeBefore) return { topics, nextInMs: scheduledInMs }
    const { nextInMs } = isDue || making ? await make() : { nextInMs: scheduledInMs }
    return { topics: (await dueTopics()).topics, nextInMs }
  }
}

/** Returns when the next scheduled event is due. One that is due and locked is left out: the next look tries again. */
function makeDueStatement(context: StatementContext) {
  const { outbox, horizon } = context
  const o = sql`o`
  return async (): Promise<Pick<Due, 'nextInMs'>> => {
    const [row] = await runInBackground<{ count: AnyNumber; nextInMs: AnyNumber | null }>(
      context,
      'make scheduled events due',
      sql`
        with due as materialized (
          select o.id from ${outbox} o where ${isOverdue(o, horizon)}
          order by o.deliver_at limit ${hiddenLimit(MOST)} for update skip locked
        ), made as (
          update ${outbox} o set status = 'pending', available_at = clock_timestamp(),
            updated_at = clock_timestamp() from due where o.id = due.id returning o.id
        )
        select (select count(*)::int from made) as count, (
          select date_part('epoch', o.deliver_at - now()) * 1000 from ${outbox} o
          where ${isScheduledIndexed(o)} and o.deliver_at > now() order by o.deliver_at limit 1
        ) as "nextInMs"`,
    )
    const { count, nextInMs } = row!
    if (Number(count) === MOST) return { nextInMs: 0 }
    return { nextInMs: nextInMs === null ? null : Number(nextInMs) }
  }
}
