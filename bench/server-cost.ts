// What a turn costs Postgres: statements and WAL by the server's own account, CPU by the kernel's.
import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type postgres from 'postgres'

/** Often enough to see a backend before it ends, and too seldom to cost anything. */
const SAMPLE_MS = 200

export interface ServerCost {
  readonly statements: number
  readonly walBytes: number
}

// Without those that begin and end transactions: not all of them are counted when they are prepared.
export async function readCost(admin: postgres.Sql, database: string): Promise<ServerCost> {
  const [cost] = await admin<[ServerCost]>`
    select coalesce(sum(calls), 0)::float8 as statements,
      pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as "walBytes"
    from pg_stat_statements where toplevel and query !~* '^(begin|start|commit|rollback)'
      and dbid = (select oid from pg_database where datname = ${database})`
  return cost
}

/** CPU time of processes that come and go: what each of them used since it was first noted, or since it began. */
export class CpuTally {
  readonly #before: ReadonlyMap<number, number>
  readonly #latest = new Map<number, number>()

  constructor(before: ReadonlyMap<number, number>) {
    this.#before = before
  }

  /** A process that is missing has ended, and keeps what it used. */
  note(now: ReadonlyMap<number, number>): void {
    for (const [pid, ns] of now) this.#latest.set(pid, ns)
  }

  get microseconds(): number {
    const used = [...this.#latest].map(([pid, ns]) => ns - (this.#before.get(pid) ?? 0))
    return used.reduce((sum, ns) => sum + ns, 0) / 1_000
  }
}

export interface CpuWatch {
  /** Ends the watch. Returns microseconds since it began; null where the kernel does not say. */
  end(): Promise<number | null>
}

/** Watches all backends of a database. Autovacuum is left out, because its turns come by the clock. */
export async function watchBackends(admin: postgres.Sql, database: string): Promise<CpuWatch> {
  const read = async () => {
    const rows = await admin<{ pid: number }[]>`select pid from pg_stat_activity
      where datname = ${database} and backend_type <> 'autovacuum worker'`
    const times = await Promise.all(rows.map(async ({ pid }) => [pid, await cpuOf(pid)] as const))
    return new Map(times.flatMap(([pid, ns]) => (ns === null ? [] : [[pid, ns] as const])))
  }
  const tally = new CpuTally(await read())
  const ending = new AbortController()
  const sampling = (async () => {
    while (!ending.signal.aborted) {
      tally.note(await read())
      await delay(SAMPLE_MS, undefined, { signal: ending.signal }).catch(() => {})
    }
  })()
  async function end(): Promise<number | null> {
    ending.abort()
    await sampling
    tally.note(await read())
    return tally.microseconds > 0 ? tally.microseconds : null
  }
  let ended: Promise<number | null> | undefined
  return { end: () => (ended ??= end()) }
}

/** Nanoseconds on a core, user and system; null for a process that has ended, and on systems without /proc. */
async function cpuOf(pid: number): Promise<number | null> {
  const text = await readFile(`/proc/${pid}/schedstat`, 'utf8').catch(() => null)
  return text === null ? null : Number(text.split(' ')[0])
}
