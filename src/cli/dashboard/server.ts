// The HTTP server of `aftercommit dashboard`.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FetchHandler } from '../../dashboard/handler.ts'
import { toNodeListener } from '../../dashboard/node-listener.ts'
import { CliError } from '../cli-error.ts'
import { EXIT } from '../exit-codes.ts'

export interface DashboardServer {
  /** Where a browser finds it. */
  readonly url: string
  close(): Promise<void>
}

export async function serve(
  handler: FetchHandler,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<DashboardServer> {
  const server = createServer(toNodeListener(handler))
  await listen(server, host, port)
  return {
    url: addressOf(server.address() as AddressInfo),
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  try {
    await once(server.listen(port, host), 'listening')
  } catch (cause) {
    const { code } = cause as { code?: string }
    const remedy = REMEDIES[code ?? ''] ?? 'check --host and --port'
    const message = `cannot listen on port ${port} of ${host} (${code}): ${remedy}`
    throw new CliError(EXIT.failed, message, { cause })
  }
}

const REMEDIES: Readonly<Record<string, string>> = {
  EADDRINUSE:
    'another process has it, perhaps a dashboard that still runs; choose another with --port, or --port 0 for any that is free',
  EACCES: 'this user may not use that port; choose one above 1023 with --port',
  EADDRNOTAVAIL: 'this machine has no such address; check --host',
}

function addressOf({ address, family, port }: AddressInfo): string {
  const name = address === '0.0.0.0' || address === '::' ? 'localhost' : address
  return `http://${family === 'IPv6' && name === address ? `[${name}]` : name}:${port}/`
}
