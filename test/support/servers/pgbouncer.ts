// A real PgBouncer of one's own in transaction mode, in front of a Postgres: every transaction may run on
// another connection to the server than the one before, so whoever relies on a session notices.
import { execFile } from 'node:child_process'
import { chown, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { isContinuousIntegration } from '../run/continuous-integration.ts'
import { findFreePort } from './free-port.ts'
import { createReachableFolder, findIdentity } from './postgres-user.ts'
import { spawnServer } from './server-process.ts'

export type PgBouncer = {
  /** The given URL by way of PgBouncer; postgres.js reads from it that it must not prepare statements. */
  pooled(url: string): string
  /** PgBouncer's own console, which answers SHOW POOLS and its like. */
  readonly consoleUrl: string
  stop(): Promise<void>
}

const run = promisify(execFile)
// Debian installs it where only root's PATH looks.
const env = { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin` }

/** Why there is no PgBouncer; on CI that is a failure, so that a green run never means "not tested". */
export async function explainMissingPgBouncer(): Promise<string | null> {
  const missing = await run('pgbouncer', ['--version'], { env }).then(
    () => null,
    () => 'pgbouncer is not installed (apt-get install pgbouncer)',
  )
  if (missing && isContinuousIntegration()) throw new Error(missing)
  return missing
}

/** `poolSize` is the number of connections to the server, per database, that all clients share. */
export async function startPgBouncer(url: string, poolSize: number): Promise<PgBouncer> {
  const server = new URL(url)
  const identity = await findIdentity()
  const folder = await createReachableFolder('aftercommit-pgbouncer-', identity)
  try {
    const port = await findFreePort()
    const users = join(folder.path, 'users.txt')
    const settings = join(folder.path, 'pgbouncer.ini')
    await writeFile(users, `"${server.username}" "${decodeURIComponent(server.password)}"\n`, {
      mode: 0o600,
    })
    if (identity) await chown(users, identity.uid, identity.gid)
    await writeFile(
      settings,
      `[databases]
* = host=${server.hostname} port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
auth_user = ${server.username}
admin_users = ${server.username}
pool_mode = transaction
default_pool_size = ${poolSize}
max_client_conn = 1000
`,
    )
    const bouncer = await spawnServer(folder, 'pgbouncer', [settings], {
      endSignal: 'KILL',
      identity,
      env,
    })
    await bouncer.waitForOutput('process up')
    const pooled = (direct: string) => {
      const answer = new URL(direct)
      answer.host = `127.0.0.1:${port}`
      answer.searchParams.set('prepare', 'false')
      return answer.href
    }
    const consoleUrl = new URL(pooled(url))
    consoleUrl.pathname = '/pgbouncer'
    // It has no types that postgres.js could ask for.
    consoleUrl.searchParams.set('fetch_types', 'false')
    return {
      pooled,
      consoleUrl: consoleUrl.href,
      async stop() {
        bouncer.signal('SIGTERM')
        await bouncer.exited
        await folder.remove()
      },
    }
  } catch (error) {
    await folder.remove()
    throw error
  }
}
