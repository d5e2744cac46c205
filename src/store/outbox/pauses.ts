// Pauses: one row each, by topic. The row with the empty topic, which no event has, pauses everything.
import { sql, type SQL } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import { qualifiedName, type TableName } from '../table-name.ts'
import type { ControlStore, Pause } from './control-store.ts'
import { type AnyNumber, toDate } from './rows.ts'
import type { StatementContext } from './statement.ts'

const EVERYTHING = ''

/** The table of pauses that belongs to this outbox table. */
export function pausesName({ schema, name }: TableName): SQL {
  return qualifiedName({ schema, name: `${name}_pauses` })
}

export interface PauseRow extends Omit<Pause, 'topic' | 'since'> {
  topic: string
  since: AnyNumber
}

/** Whether this topic, or everything, is paused. */
export const isPaused = (table: TableName, topic: SQL) =>
  sql`exists (select from ${pausesName(table)} paused where paused.topic in (${EVERYTHING}::text, ${topic}))`

/** All pauses, as PauseRow. */
export const selectPauses = (table: TableName) => sql`
  select topic, date_part('epoch', since) * 1000 as since, paused_by as "by", reason
  from ${pausesName(table)} order by topic`

export function toPause({ topic, since, by, reason }: PauseRow): Pause {
  return { topic: topic === EVERYTHING ? null : topic, since: toDate(since), by, reason }
}

export function pauseStatements(
  context: StatementContext,
): Pick<ControlStore, 'pause' | 'resume' | 'pauses'> {
  const { table } = context.rules
  const pauses = pausesName(table)
  return {
    async pause(topic, { by, reason }) {
      const made = await runInBackground(
        context,
        'pause',
        sql`insert into ${pauses} (topic, paused_by, reason)
          values (${topic ?? EVERYTHING}::text, ${by}::text, ${reason}::text)
          on conflict (topic) do nothing returning topic`,
      )
      return made.length > 0
    },

    async resume(topic) {
      const ended = await runInBackground(
        context,
        'resume',
        sql`delete from ${pauses} where topic = ${topic ?? EVERYTHING}::text returning topic`,
      )
      return ended.length > 0
    },

    async pauses() {
      const rows = await runInBackground<PauseRow>(context, 'read pauses', selectPauses(table))
      return rows.map(toPause)
    },
  }
}
