// One page of dead letters, oldest first.
import { sql } from '../../drivers/sql.ts'
import { run } from '../database.ts'
import { matching } from './failure-filter.ts'
import { type DeadLetterFilter, type FailurePage, ofDeadLetters } from './failure-store.ts'
import type { DeadLetter } from './outbox-store.ts'
import { type AnyNumber, EVENT_COLUMNS, type EventRow, toDate, toEvent } from './rows.ts'
import type { StatementContext } from './statement.ts'

export function listDeadLettersStatement({ db, outbox }: StatementContext) {
  return async (
    filter: DeadLetterFilter,
    { limit, afterSeq }: FailurePage,
  ): Promise<DeadLetter[]> => {
    const rows = await run<EventRow & { error: string | null; diedAt: AnyNumber }>(
      db,
      'list dead letters',
      sql`
        select ${EVENT_COLUMNS}, o.last_error as error,
          (extract(epoch from o.last_attempt_at) * 1000)::float8 as "diedAt"
        from ${outbox} o where ${matching(ofDeadLetters(filter))} and o.seq > ${afterSeq}::float8::bigint
        order by o.seq limit ${limit}::int`,
    )
    return rows.map(({ error, diedAt, ...row }) => {
      return { ...toEvent(row), error: error ?? '', diedAt: toDate(diedAt) }
    })
  }
}
