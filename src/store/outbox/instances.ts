// The instances that run: one row each, renewed by the beat. No index but the primary key, so that a renewal is a HOT update
// and the table stays as small as there are instances.
import { sql, type SQL } from '../../drivers/sql.ts'
import { type Background, runInBackground } from '../database.ts'
import { qualifiedName, type TableName } from '../table-name.ts'
import {
  type ControlStore,
  HISTORY_MINUTES,
  type Instance,
  type InstanceHistory,
  type InstanceReport,
  type PastInstance,
} from './control-store.ts'
import { type PauseRow, selectPauses, toPause } from './pauses.ts'
import { type AnyNumber, toDate } from './rows.ts'
import type { StatementContext } from './statement.ts'

/** Unseen for this long, an instance is gone for good: it was killed, or its machine was. */
const FORGOTTEN = sql`interval '1 hour'`

/** What it did is kept for longer. */
const KEPT = sql`interval '${sql.raw(String(HISTORY_MINUTES))} minutes'`

/** `seen_at` of an instance that has stopped: no version lists it, and no beat of it that comes late renews it. */
const STOPPED = sql`'-infinity'::timestamptz`

/** So short that a beat whose connection hangs and the next one both fit into what upkeep/presence.ts promises. */
const LONGEST_BEAT_MS = 4_000

/** The table of instances that belongs to this outbox table. */
export function instancesName({ schema, name }: TableName): SQL {
  return qualifiedName({ schema, name: `${name}_instances` })
}

type AsText = 'publishers' | 'immediate' | 'poller' | 'settings' | 'report'
type AsNumber = 'pid' | 'startedAt' | 'seenAt' | 'seenMsAgo'

type InstanceRow = Omit<Instance, AsText | AsNumber> &
  Record<AsText, string> &
  Record<AsNumber, AnyNumber>

/** Defaults for what an instance of an earlier version does not report. */
const NO_REPORT: InstanceReport = {
  inFlight: 0,
  circuits: [],
  published: { immediate: 0, fallback: 0 },
  failed: 0,
  dead: 0,
  duplicates: 0,
  latency: [],
}

function toInstance(row: InstanceRow): Instance {
  return {
    id: row.id,
    workerId: row.workerId,
    host: row.host,
    pid: Number(row.pid),
    version: row.version,
    startedAt: toDate(row.startedAt),
    seenAt: toDate(row.seenAt),
    seenMsAgo: Math.max(0, Number(row.seenMsAgo)),
    publishers: JSON.parse(row.publishers) as Instance['publishers'],
    immediate: row.immediate === 'true',
    poller: row.poller === 'true',
    settings: JSON.parse(row.settings) as Instance['settings'],
    report: { ...NO_REPORT, ...(JSON.parse(row.report) as Partial<InstanceReport>) },
  }
}

export function instanceStatements(
  context: StatementContext,
): Pick<ControlStore, 'instances' | 'beat' | 'leave' | 'histories'> {
  const { table } = context.rules
  const instances = instancesName(table)
  const hurried: Background = {
    db: context.db,
    statementTimeoutMs: Math.min(context.statementTimeoutMs, LONGEST_BEAT_MS),
  }
  return {
    async instances() {
      const rows = await runInBackground<InstanceRow>(
        context,
        'read instances',
        sql`
          select id::text, worker_id as "workerId", host, pid, version, publishers::text,
            immediate::text, poller::text, settings::text, report::text,
            date_part('epoch', started_at) * 1000 as "startedAt",
            date_part('epoch', seen_at) * 1000 as "seenAt",
            date_part('epoch', clock_timestamp() - seen_at) * 1000 as "seenMsAgo"
          from ${instances} where seen_at >= clock_timestamp() - ${FORGOTTEN}
          order by started_at, id`,
      )
      return rows.map(toInstance)
    },

    // SKIP LOCKED: another beat may be deleting the same rows. Its own row an instance never deletes, however long it slept.
    // The history is written once a minute. In between, its column keeps the value that it has, which Postgres does not copy.
    async beat(self, history) {
      const { id, workerId, host, pid, version, upMs, immediate, poller } = self
      const { publishers, settings, report } = self
      const rows = await runInBackground<PauseRow>(
        hurried,
        'beat',
        sql`
          with unseen as materialized (
            select id from ${instances} where seen_at < clock_timestamp() - ${FORGOTTEN}
              and (history_at is null or history_at < clock_timestamp() - ${KEPT})
              and id <> ${id}::text::uuid for update skip locked
          ), forgotten as (
            delete from ${instances} i using unseen where i.id = unseen.id
          ), renewed as (
            insert into ${instances} as i
              (id, worker_id, host, pid, version, started_at, publishers, immediate, poller, settings,
                report, history, history_at)
            values (${id}::text::uuid, ${workerId}::text, ${host}::text, ${pid}::int, ${version}::text,
              clock_timestamp() - ${upMs}::float8 * interval '1 ms',
              ${JSON.stringify(publishers)}::text::json, ${immediate}::boolean, ${poller}::boolean,
              ${JSON.stringify(settings)}::text::json, ${JSON.stringify(report)}::text::json,
              ${toText(history)}::text::json, case when ${toText(history)}::text is not null then clock_timestamp() end)
            on conflict (id) do update set seen_at = clock_timestamp(), report = excluded.report,
              history = coalesce(excluded.history, i.history),
              history_at = coalesce(excluded.history_at, i.history_at)
            where i.seen_at > ${STOPPED}
          )
          ${selectPauses(table)}`,
      )
      return rows.map(toPause)
    },

    // The row stays, so that a beat that was delayed on the network finds it and does not make a new one.
    async leave(id, history) {
      await runInBackground(
        context,
        'take this instance off the list',
        sql`update ${instances} set seen_at = ${STOPPED}, history = ${toText(history)}::text::json,
          history_at = clock_timestamp() where id = ${id}::text::uuid`,
      )
    },

    async histories() {
      const rows = await runInBackground<PastRow>(
        context,
        'read what instances did',
        sql`
          select id::text, worker_id as "workerId", host, history::text,
            date_part('epoch', started_at) * 1000 as "startedAt",
            date_part('epoch', history_at) * 1000 as "writtenAt",
            date_part('epoch', clock_timestamp() - nullif(seen_at, ${STOPPED})) * 1000 as "seenMsAgo"
          from ${instances} where history_at >= clock_timestamp() - ${KEPT}
          order by started_at desc, id`,
      )
      return rows.map(toPast)
    },
  }
}

type PastRow = Omit<PastInstance, 'startedAt' | 'writtenAt' | 'seenMsAgo' | 'history'> &
  Record<'startedAt' | 'writtenAt', AnyNumber> & {
    readonly seenMsAgo: AnyNumber | null
    readonly history: string
  }

function toPast({ id, workerId, host, startedAt, writtenAt, seenMsAgo, history }: PastRow) {
  return {
    id,
    workerId,
    host,
    startedAt: toDate(startedAt),
    writtenAt: toDate(writtenAt),
    seenMsAgo: seenMsAgo === null ? null : Math.max(0, Number(seenMsAgo)),
    history: JSON.parse(history) as InstanceHistory,
  }
}

function toText(history: InstanceHistory | null): string | null {
  return history && JSON.stringify(history)
}
