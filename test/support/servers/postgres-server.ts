// A real PostgreSQL of one's own: on loopback, without passwords, in a temporary folder. It can be
// crashed and started again on the same port and data, to prove what survives.
import { chown, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
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
    }
  } catch (error) {
    await folder.remove()
    throw error
  }
}
