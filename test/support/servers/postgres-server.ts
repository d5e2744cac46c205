// A real PostgreSQL of one's own: on loopback, without passwords, in a temporary folder. It can be crashed, lose its power
// and start again on the same port and data, and standbys can follow it, to prove what survives.
import { chown, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import postgresJs from 'postgres'
import { findFreePort } from './free-port.ts'
import { type PostgresInstallation, preparePostgres } from './postgres-binaries.ts'
import { copyAsStandby } from './postgres-copy.ts'
import { killFamily, runToEnd, type ServerProcess, spawnServer } from './server-process.ts'

export type PostgresOptions = {
  /** @default a free port */
  port?: number
  /** Server settings by name, such as `{ wal_level: 'logical' }`. */
  settings?: Record<string, string>
  /** Where to keep the WAL, in segments of a megabyte. @default with the data, in segments of the usual size */
  walFolder?: string
}

export type PostgresServer = {
  readonly url: string
  readonly port: number
  /** The process id of the postmaster; another one after `start()`. */
  readonly pid: number
  /** Whether it runs: a full disk can end it. */
  readonly running: boolean
  /** Disconnects everybody, shuts down and deletes the data. */
  stop(): Promise<void>
  /** Crashes the server: no checkpoint, recovery at the next `start()`. */
  kill(): Promise<void>
  /** Kills all its processes at once, as a machine that loses power does: no process gets to say or send anything. */
  powerOff(): Promise<void>
  /** Starts a killed server again on the same port and data. */
  start(): Promise<void>
  /** A server of its own, with the same settings, that follows this one and is read-only until it is promoted. */
  startStandby(options?: StandbyOptions): Promise<StandbyServer>
}

type StandbyOptions = {
  /** The port by which it reaches this server, such as a proxy's. @default the server's own */
  through?: number
}

export type StandbyServer = PostgresServer & {
  /** Ends the recovery: from here on it takes writes. */
  promote(): Promise<void>
}

const READY = 'database system is ready to accept'

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const installation = await preparePostgres()
  const { folder, identity, initdb } = installation
  const data = join(folder.path, 'data')
  try {
    await mkdir(data, { mode: 0o700 })
    if (identity) await chown(data, identity.uid, identity.gid)
    const layout = ['--username=postgres', '--encoding=UTF8', '--locale=C']
    const wal = options.walFolder ? [`--waldir=${options.walFolder}`, '--wal-segsize=1'] : []
    const flags = [`--pgdata=${data}`, '--auth=trust', '--no-sync', ...layout, ...wal]
    // An initdb that is interrupted leaves a shared memory segment behind, so it gets time to finish.
    await runToEnd(folder, initdb, flags, { ...processOptions(installation), endSignal: 'CONT' })
    return await serve(installation, data, options)
  } catch (error) {
    await folder.remove()
    throw error
  }
}

/** Runs a server on the data. */
async function serve(
  installation: PostgresInstallation,
  data: string,
  options: PostgresOptions,
): Promise<PostgresServer> {
  const { folder, postgres } = installation
  const port = options.port ?? (await findFreePort())
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: '200',
    ...options.settings,
    port: String(port),
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])

  async function boot(): Promise<ServerProcess> {
    const args = ['-D', data, ...flags]
    const booted = await spawnServer(folder, postgres, args, processOptions(installation))
    await booted.waitForOutput(READY)
    return booted
  }

  let server = await boot()
  let lostPower = false
  let stopped: Promise<void> | undefined

  async function start(): Promise<void> {
    if (!server.running) server = await boot()
    lostPower = false
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    server.signal(signal)
    await server.exited
  }

  async function stopForGood(): Promise<void> {
    // Shared memory outlives a server that lost its power; its next start finds and frees it.
    if (lostPower) await start()
    await end('SIGINT')
    await folder.remove()
  }

  return {
    url,
    port,
    get pid() {
      return server.pid
    },
    get running() {
      return server.running
    },
    stop() {
      stopped ??= stopForGood()
      return stopped
    },
    kill: () => end('SIGQUIT'),
    async powerOff() {
      lostPower = true
      await killFamily(server)
    },
    start,
    startStandby: (how) => startStandby({ url, port, data }, how, options.settings),
  }
}

type Primary = { readonly url: string; readonly port: number; readonly data: string }

async function startStandby(
  primary: Primary,
  { through = primary.port }: StandbyOptions = {},
  settings: Record<string, string> = {},
): Promise<StandbyServer> {
  const installation = await preparePostgres()
  const { folder, identity } = installation
  const data = join(folder.path, 'data')
  try {
    await copyAsStandby(primary, { data, identity, through })
    const server = await serve(installation, data, { settings })
    const promote = async () => {
      const own = postgresJs(server.url, { max: 1 })
      await own`select pg_promote()`
      await own.end()
    }
    // Its getters have to stay getters.
    return Object.assign(server, { promote })
  } catch (error) {
    await folder.remove()
    throw error
  }
}

function processOptions({ identity }: PostgresInstallation) {
  return { endSignal: 'QUIT', identity, env: { LC_ALL: 'C', TZ: 'UTC' } } as const
}
