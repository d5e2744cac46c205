// The dashboard beside the terminal, on this machine only: what the demo does to the broker can be watched there.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import { dashboard, toNodeListener } from 'aftercommit/dashboard'
import type { Outbox } from 'aftercommit'
import { buildPage } from '../../test/support/run/built-page.ts'

const HOST = '127.0.0.1'
/** The port of `aftercommit dashboard`. If it is taken, any other. */
const PORT = 4_411

export interface DemoDashboard {
  readonly url: string
  close(): Promise<void>
}

export async function openDashboard(outbox: Outbox<PostgresJsDatabase>): Promise<DemoDashboard> {
  // A server that runs from src reads the page from dist. Building it takes half a second.
  await buildPage()
  const handler = dashboard(outbox, {
    basePath: '/',
    // There is no password, so a site whose name points to this machine must not get in.
    authorize: ({ url }) => isLocal(url) && { by: 'the demo', mayAct: true },
  })
  const server = createServer(toNodeListener(handler))
  await listen(server, PORT).catch(() => listen(server, 0))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${HOST}:${port}/`,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

function isLocal(url: string): boolean {
  return [HOST, 'localhost'].includes(new URL(url).hostname)
}

async function listen(server: Server, port: number): Promise<void> {
  await once(server.listen(port, HOST), 'listening')
}
