// What a unit of work begins on, under Drizzle. On a node-postgres pool, Drizzle checks out a connection and sends BEGIN
// before it calls anything of ours. If the connection dies then, it emits 'error' where nothing listens, which ends the
// process; if BEGIN fails, Drizzle never returns it (drizzle-orm#6241), and after a few outages the pool is empty. So a unit
// of work runs on a copy of the database whose pool passes on one connection, and we listen to it and see to its return.
import type { EventEmitter } from 'node:events'
import type { DrizzleDatabase } from './driver.ts'
import { unmarked } from './mark-transactions.ts'

interface Connection extends EventEmitter {
  release(error?: Error | boolean): void
}

interface Pool {
  readonly totalCount: number
  connect(): Promise<Connection>
}

interface Session {
  readonly client?: unknown
}

const ignore = () => {}

/** Returns what runs a transaction on the database or, if its connections come from such a pool, on a copy of it. */
export function onOwnConnection(
  db: DrizzleDatabase,
  session: Session | undefined,
): <T>(transact: (db: DrizzleDatabase) => Promise<T>) => Promise<T> {
  const pool = session?.client
  if (session && isPostgresJs(pool)) {
    // Drizzle begins on the client, whose begin() may be marked as the application's, now or later.
    const begin = {
      get begin() {
        return unmarked(pool, 'begin')
      },
    }
    const own = copyOf(db, session, begin)
    return (transact) => transact(own)
  }
  if (!session || !isPool(pool)) return (transact) => transact(db)
  return (transact) => onPool(db, session, pool, transact)
}

async function onPool<T>(
  db: DrizzleDatabase,
  session: Session,
  pool: Pool,
  transact: (db: DrizzleDatabase) => Promise<T>,
): Promise<T> {
  let giveBack: Connection['release'] = ignore
  let connection: Connection | null = null
  const connect = async () => {
    connection = await pool.connect()
    connection.on('error', ignore)
    // The pool makes a new function for each check-out, and this one only ever ends this one.
    giveBack = connection.release.bind(connection)
    return connection
  }
  try {
    return await transact(copyOf(db, session, { connect }))
  } catch (error) {
    // Usually Drizzle has returned it, and the pool refuses a second time.
    try {
      giveBack(true)
    } catch {}
    throw error
  } finally {
    ;(connection as Connection | null)?.off('error', ignore)
  }
}

/** The database, on a client that does some things differently. */
function copyOf(db: DrizzleDatabase, session: Session, changes: object): DrizzleDatabase {
  const client: unknown = Object.create(
    session.client as object,
    Object.getOwnPropertyDescriptors(changes),
  )
  const own: unknown = Object.create(session, { client: { value: client } })
  return Object.create(db, { session: { value: own } }) as DrizzleDatabase
}

function isPostgresJs(client: unknown): client is object {
  return typeof (client as { begin?: unknown } | undefined)?.begin === 'function'
}

function isPool(client: unknown): client is Pool {
  const { totalCount, connect } = (client ?? {}) as Partial<Pool>
  return typeof totalCount === 'number' && typeof connect === 'function'
}
