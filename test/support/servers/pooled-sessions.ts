// The sessions behind a PgBouncer: held one by one, to look into each or to keep others out of it.
import postgres from 'postgres'
import { defer } from '../timing/deferred.ts'
import type { PgBouncer } from './pgbouncer.ts'

export type HeldSession = {
  readonly pid: number
  /** What an earlier user of the session left in it. */
  readonly leftovers: { prepared: number; listening: number; searchPath: string }
  release(): Promise<void>
}

/** Holds that many sessions at once, each in a transaction of its own. Answers them by process id. */
export async function holdSessions(url: string, count: number): Promise<HeldSession[]> {
  const held: HeldSession[] = []
  for (let n = 1; n <= count; n += 1) held.push(await holdSession(url))
  return held.toSorted((a, b) => a.pid - b.pid)
}

async function holdSession(url: string): Promise<HeldSession> {
  const client = postgres(url, { prepare: false, max: 1 })
  const [held, released] = [defer<Omit<HeldSession, 'release'>>(), defer()]
  const transaction = client.begin(async (tx) => {
    const [session] = await tx<Omit<HeldSession, 'release'>[]>`
      select pg_backend_pid() as pid, json_build_object(
        'prepared', (select count(*) from pg_prepared_statements),
        'listening', (select count(*) from pg_listening_channels()),
        'searchPath', current_setting('search_path')) as leftovers`
    held.resolve(session!)
    await released.promise
  })
  await Promise.race([held.promise, transaction])
  return {
    ...(await held.promise),
    async release() {
      released.resolve()
      await transaction
      await client.end()
    },
  }
}

/** Gives them all back, also when what was done meanwhile fails. */
export async function whileHeld<T>(
  held: readonly HeldSession[],
  work: () => PromiseLike<T>,
): Promise<T> {
  try {
    return await work()
  } finally {
    await Promise.all(held.map((session) => session.release()))
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
