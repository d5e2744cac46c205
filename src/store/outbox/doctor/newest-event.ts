// Who was to send the newest event. Ids begin with their time, so the primary key finds it.
import { sql } from '../../../drivers/sql.ts'
import { look, type LookContext } from './look.ts'

/** null: there is no event. */
export type NewestEvent = { readonly isForCdc: boolean } | null

export function newestEventStatement(context: LookContext) {
  return (): Promise<NewestEvent> =>
    look(
      context,
      'look at the newest event',
      // As JSON, because a table that is not migrated yet may lack the column.
      sql`select json_build_object('isForCdc', to_jsonb(o)->>'cdc_occurred_at' is not null)
        from ${context.outbox} o order by o.id desc limit 1`,
    )
}
