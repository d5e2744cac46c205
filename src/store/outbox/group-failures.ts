// The largest groups of failures. It looks at the newest of each kind, by an index that holds nothing else, so neither
// history nor what waits to be sent costs anything.
import { sql } from '../../drivers/sql.ts'
import { run } from '../database.ts'
import { boiledDown } from './boiled-error.ts'
import { isFailureIndexed } from './failure-filter.ts'
import type { FailureGroup, FailureStatus } from './failure-store.ts'
import { type AnyNumber, hiddenLimit, toDate } from './rows.ts'
import type { StatementContext } from './statement.ts'

/** Of each kind. */
const LOOKED_AT = 10_000

/** The newest errors, this many, are reduced, which takes some 50 µs each. */
const BOILED = 2_000

/** Errors that differ in digits alone boil down to the same. `0x` begins a number, so 0 stays what it is. */
const SHAPE = sql`translate(error, '23456789', '11111111')`

interface GroupRow {
  status: FailureStatus
  type: string
  topic: string
  error: string
  count: AnyNumber
  looked: AnyNumber
  boiled: AnyNumber
  firstAt: AnyNumber
  lastAt: AnyNumber
  exampleId: string
  exampleError: string
}

export function groupFailuresStatement({ db, outbox }: StatementContext) {
  const newest = (status: FailureStatus) => sql`
    (select o.status, o.event_type, o.topic, o.id, o.seq, coalesce(o.last_error, '') as error,
      coalesce(o.last_attempt_at, o.updated_at) as at
    from ${outbox} o where ${isFailureIndexed(status)} order by o.seq desc limit ${hiddenLimit(LOOKED_AT)})`
  return async (limit: number): Promise<FailureGroup[]> => {
    const rows = await run<GroupRow>(
      db,
      'group what failed',
      sql`
        with looked as materialized (${newest('failed')} union all ${newest('dead_letter')}
        ), shapes as materialized (
          select status, event_type, topic, ${SHAPE} as shape, count(*) as count, min(at) as first, max(at) as last,
            max(seq) as seq
          from looked group by status, event_type, topic, shape order by max(seq) desc limit ${hiddenLimit(BOILED)}
        ), alike as materialized (
          select s.*, l.id, l.error from shapes s join looked l on l.seq = s.seq
        ), grouped as (
          select status, event_type, topic, ${boiledDown(sql`error`)} as boiled, sum(count)::int as count,
            min(first) as first, max(last) as last, (array_agg(id order by seq desc))[1] as id,
            (array_agg(error order by seq desc))[1] as example
          from alike group by status, event_type, topic, boiled
        )
        select g.status, g.event_type as type, g.topic, g.boiled as error, g.count,
          (select count(*)::int from looked l where l.status = g.status) as looked,
          (select count(*)::int from alike) as boiled,
          date_part('epoch', g.first) * 1000 as "firstAt", date_part('epoch', g.last) * 1000 as "lastAt",
          g.id::text as "exampleId", g.example as "exampleError"
        from grouped g order by g.count desc, g.last desc, g.id limit ${limit}::int`,
    )
    return rows.map(
      ({ looked, boiled, count, firstAt, lastAt, exampleId, exampleError, ...group }) => ({
        ...group,
        count: Number(count),
        exact: Number(looked) < LOOKED_AT && Number(boiled) < BOILED,
        firstAt: toDate(firstAt),
        lastAt: toDate(lastAt),
        example: { id: exampleId, error: exampleError },
      }),
    )
  }
}
