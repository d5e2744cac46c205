// A real PostgreSQL of one's own: on loopback, without passwords, in a temporary folder. It can be
// crashed and started again on the same port and data, to prove what survives.
import { chown, cp, mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import postgresJs from 'postgres'
import { findFreePort } from './free-port.ts'
import { preparePostgres } from './postgres-binaries.ts'
import { runToEnd, type ServerProcess, spawnServer } from './server-process.ts'

export type PostgresOptions = {
  /** @default a free port */
  port?: number
  /** Server settings by name, such as `{ wal_level: 'logical' }`. */
  settings?: Record<string, string>
}

export type PostgresServer = {
  readonly url: string
  readonly port: number
  /** The process id of the postmaster; another one after `start()`. */
  readonly pid: number
  /** Disconnects everybody, shuts down and deletes the data. */
  stop(): Promise<void>
  /** Crashes the server: no checkpoint, recovery at the next `start()`. */
  kill(): Promise<void>
  /** Starts a killed server again on the same port and data. */
  start(): Promise<void>
  /** A server of its own that follows this one, read-only until it is promoted. */
  startStandby(): Promise<StandbyServer>
}

type StandbyServer = Pick<PostgresServer, 'url' | 'port' | 'stop'> & {
  /** Ends the recovery: from here on it takes writes. */
  promote(): Promise<void>
}

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const { folder, identity, initdb, postgres } = await preparePostgres()
  const data = join(folder.path, 'data')
  const processOptions = { endSignal: 'QUIT', identity, env: { LC_ALL: 'C', TZ: 'UTC' } } as const

  async function boot(settings: Record<string, string>): Promise<ServerProcess> {
    const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const server = await spawnServer(folder, postgres, ['-D', data, ...flags], processOptions)
    await server.waitForOutput('database system is ready to accept connections')
    return server
  }

  try {
    const port = options.port ?? (await findFreePort())
    const settings = {
      listen_addresses: '127.0.0.1',
      port: String(port),
      unix_socket_directories: '',
      max_connections: '200',
      ...options.settings,
    }
    await mkdir(data, { mode: 0o700 })
    if (identity) await chown(data, identity.uid, identity.gid)
    const layout = ['--username=postgres', '--encoding=UTF8', '--locale=C']
    const flags = [`--pgdata=${data}`, '--auth=trust', '--no-sync', ...layout]
    // An initdb that is interrupted leaves a shared memory segment behind, so it gets time to finish.
    await runToEnd(folder, initdb, flags, { ...processOptions, endSignal: 'CONT' })
    let server = await boot(settings)
    let stopped: Promise<void> | undefined

    async function end(signal: NodeJS.Signals): Promise<void> {
      server.signal(signal)
      await server.exited
    }

    return {
      url: `postgres://postgres@127.0.0.1:${port}/postgres`,
      port,
      get pid() {
        return server.pid
      },
      stop() {
        stopped ??= end('SIGINT').then(() => folder.remove())
        return stopped
      },
      kill: () => end('SIGQUIT'),
      async start() {
        if (!server.running) server = await boot(settings)
      },
      startStandby: () => startStandby(data, port),
    }
  } catch (error) {
    await folder.remove()
    throw error
  }
}

const READY = 'database system is ready to accept'

/** A copy of the running primary, by Postgres's own protocol for backups, which then follows it. */
async function startStandby(primaryData: string, primaryPort: number): Promise<StandbyServer> {
  const { folder, identity, postgres } = await preparePostgres()
  const data = join(folder.path, 'data')
  const port = await findFreePort()
  const primaryUrl = urlOf(primaryPort)
  try {
    const client = postgresJs(primaryUrl, { max: 1, onnotice: () => {} })
    await client`select pg_backup_start('standby', true)`
    await cp(primaryData, data, { recursive: true, preserveTimestamps: true, filter: isBackedUp })
    const [label] = await client<[{ labelfile: string }]>`select labelfile from pg_backup_stop()`
    await client.end()
    await writeFile(join(data, 'backup_label'), label.labelfile)
    await writeFile(join(data, 'standby.signal'), '')
    await writeFile(
      join(data, 'postgresql.auto.conf'),
      `primary_conninfo = 'host=127.0.0.1 port=${primaryPort} user=postgres'\n`,
    )
    await rm(join(data, 'postmaster.opts'), { force: true })
    if (identity) await giveTo(data, identity)
    const flags = ['listen_addresses=127.0.0.1', `port=${port}`, 'unix_socket_directories=']
    const server = await spawnServer(
      folder,
      postgres,
      ['-D', data, ...['max_connections=200', ...flags].flatMap((flag) => ['-c', flag])],
      { endSignal: 'QUIT', identity, env: { LC_ALL: 'C', TZ: 'UTC' } },
    )
    await server.waitForOutput(READY)
    return {
      url: urlOf(port),
      port,
      async promote() {
        const own = postgresJs(urlOf(port), { max: 1 })
        await own`select pg_promote()`
        await own.end()
      },
      async stop() {
        server.signal('SIGINT')
        await server.exited
        await folder.remove()
      },
    }
  } catch (error) {
    await folder.remove()
    throw error
  }
}

function urlOf(port: number): string {
  return `postgres://postgres@127.0.0.1:${port}/postgres`
}

/** A file may vanish while it is copied; these are not part of a backup. */
function isBackedUp(path: string): boolean {
  return !/postmaster\.pid$|pgsql_tmp|pg_internal\.init$|\/pg_stat_tmp\//.test(path)
}

async function giveTo(path: string, { uid, gid }: { uid: number; gid: number }): Promise<void> {
  for (const entry of await readdir(path, { recursive: true })) {
    await chown(join(path, entry), uid, gid)
  }
  await chown(path, uid, gid)
}
