// The sessions behind a PgBouncer: held one by one, to look into each or to keep others out of it.
import postgres from 'postgres'
import { defer } from './deferred.ts'
import type { PgBouncer } from './pgbouncer.ts'

type Session = {
  readonly pid: number
  /** What an earlier user of the session left in it. */
  readonly leftovers: { prepared: number; listening: number; searchPath: string }
}

export type HeldSessions = {
  readonly sessions: readonly Session[]
  release(): Promise<void>
}

/** Holds that many sessions at once, each in a transaction of its own. */
export async function holdSessions(url: string, count: number): Promise<HeldSessions> {
  const client = postgres(url, { prepare: false, max: count })
  const goOn = defer()
  const sessions: Session[] = []
  const transactions: Promise<unknown>[] = []
  for (let n = 1; n <= count; n += 1) {
    const begun = defer()
    const transaction = client.begin(async (tx) => {
      const [session] = await tx<Session[]>`
        select pg_backend_pid() as pid, json_build_object(
          'prepared', (select count(*) from pg_prepared_statements),
          'listening', (select count(*) from pg_listening_channels()),
          'searchPath', current_setting('search_path')) as leftovers`
      sessions.push(session!)
      begun.resolve()
      await goOn.promise
    })
    transactions.push(transaction)
    await Promise.race([begun.promise, transaction])
  }
  return {
    sessions,
    async release() {
      goOn.resolve()
      await Promise.all(transactions)
      await client.end()
    },
  }
}

/** Holds the session with that process id, whichever others are handed out before it. */
export async function holdSession(url: string, pid: number): Promise<HeldSessions> {
  const others: HeldSessions[] = []
  for (;;) {
    const held = await holdSessions(url, 1)
    if (held.sessions[0]!.pid === pid) {
      await Promise.all(others.map((other) => other.release()))
      return held
    }
    others.push(held)
  }
}

/** How many clients share how many sessions of a database, by PgBouncer's own account. */
export async function readPool({ consoleUrl }: PgBouncer, database: string) {
  const client = postgres(consoleUrl, { max: 1 })
  try {
    const pools = await client.unsafe('show pools').simple()
    const pool = pools.find((row) => row['database'] === database)!
    const sum = (prefix: string) =>
      Object.entries(pool)
        .filter(([column]) => column.startsWith(prefix))
        .reduce((total, [, count]) => total + Number(count), 0)
    return { clients: sum('cl_'), sessions: sum('sv_'), mode: pool['pool_mode'] as string }
  } finally {
    await client.end()
  }
}
