// The partitions of a table that has them. A partition is a range of ids, and ids begin with the time at which they were
// made. Whatever locks the table is one statement each: a database function of drizzle/partitioned/. Like the batches of
// purge.ts, they run in one instance at a time.
import { sql, type SQL } from '../../drivers/sql.ts'
import { runInBackground } from '../database.ts'
import { qualifiedName } from '../table-name.ts'
import type { Partition, PartitionPart, PartitionsFound, PartitionStore } from './outbox-store.ts'
import { ageOf, bornBefore, firstIdAt, takeTurn } from './purge.ts'
import { type AnyNumber, isDeadIndexed, isDueIndexed, isScheduledIndexed } from './rows.ts'
import type { StatementContext } from './statement.ts'

/** Today and this many days after it have a partition. Each partition costs every save and every claim a look. */
const DAYS_AHEAD = 3

/** A new partition is not attached beside a larger default partition, which is scanned while saves wait. */
const LARGEST_DEFAULT_BYTES = 2 ** 25

/** How many rows look() reads at once. */
const PART = 10_000

export function partitionStatements(context: StatementContext): PartitionStore {
  const { outbox, rules } = context

  /** Calls one of the functions, if it is this instance's turn. */
  async function call(step: string, suffix: string, values: SQL): Promise<boolean | null> {
    const name = qualifiedName({ ...rules.table, name: `${rules.table.name}${suffix}` })
    const [row] = await runInBackground<{ done: string | null }>(
      context,
      step,
      sql`select (case when ${takeTurn(rules.table)} then ${name}(${values}) end)::text as done`,
    )
    return row!.done === null ? null : row!.done === 'true'
  }

  // From the newest row on, as that is the one most likely to be too young. Before all others come those that an index
  // finds, such as a dead letter from early that day. By ids, not by name: another instance may have dropped it.
  async function lookBy(
    turn: SQL,
    { lower, upper }: Partition,
    olderThanMs: number,
    before: string | null,
  ): Promise<PartitionPart | null> {
    const part = sql`${outbox} p where p.id >= ${lower}::text::uuid and p.id < ${before ?? upper}::text::uuid`
    const hasOthers = sql`exists (select from ${part} and ${isDueIndexed(sql`p`)})
      or exists (select from ${part} and ${isDeadIndexed(sql`p`)})
      or exists (select from ${part} and ${isScheduledIndexed(sql`p`)})`
    const [row] = await runInBackground<LookedAt>(
      context,
      'look at a partition',
      sql`
        with turn as materialized (select ${turn} as mine), newest as materialized (
          select p.id, p.status = 'published' and p.published_at < now() - ${ageOf(olderThanMs)} as old
          from ${part} and (select mine from turn) order by p.id desc limit ${PART}::int
        )
        select turn.mine::text, (select count(*)::int from newest) as rows,
          (coalesce((select bool_and(old) from newest), true)
            and not (${before === null ? hasOthers : sql`false`}))::text as old,
          (select id::text from newest order by id limit 1) as before
        from turn`,
    )
    const { mine, rows, old, before: next } = row!
    return mine === 'true' ? { rows: Number(rows), isOld: old === 'true', before: next } : null
  }

  return {
    async find(olderThanMs) {
      const today = sql`(now() at time zone 'utc')::date`
      const [row] = await runInBackground<{ found: string }>(
        context,
        'look for partitions',
        sql`
          with range as materialized (
            select oid, name, substring(bound from 'TO [(]''([^'']+)')::uuid as upper,
              coalesce(substring(bound from 'FROM [(]''([^'']+)')::uuid, ${FIRST_ID}) as lower
            from (
              select c.oid::bigint, c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bound
              from pg_inherits i join pg_class c on c.oid = i.inhrelid
              where i.inhparent = to_regclass(${outbox.text}::text)
            ) part where bound <> 'DEFAULT'
          )
          select json_build_object(
            'isOwner', pg_has_role(c.relowner, 'usage') and has_schema_privilege(c.relnamespace, 'create'),
            'missing', array(
              select day::text from generate_series(0, ${DAYS_AHEAD}::int) n, date(${today} + n) day
              where not exists (select from range
                where lower <= ${firstIdAt(sql`day`)} and upper > ${firstIdAt(sql`day`)})
              order by day),
            'old', array(select to_json(r) from range r where upper <= ${bornBefore(olderThanMs)} order by upper)
          )::text as found
          from pg_class c where c.oid = to_regclass(${outbox.text}::text) and c.relkind = 'p'`,
      )
      return row ? (JSON.parse(row.found) as PartitionsFound) : null
    },

    make: (day) =>
      call(
        'make a partition',
        '_make_day',
        sql`${day}::text::date, ${LARGEST_DEFAULT_BYTES}::bigint`,
      ),

    look: (partition, olderThanMs, before) =>
      lookBy(takeTurn(rules.table), partition, olderThanMs, before),

    async peek(partition, olderThanMs, before) {
      return (await lookBy(sql`true`, partition, olderThanMs, before))!
    },

    drop: ({ oid }) => call('drop a partition', '_drop_part', sql`${oid}::bigint::oid`),
  }
}

interface LookedAt {
  mine: string
  rows: AnyNumber
  old: string
  before: string | null
}

const FIRST_ID = sql`'00000000-0000-0000-0000-000000000000'::uuid`
