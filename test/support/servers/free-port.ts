// A loopback port that is free now and stays so. It lies below the range from which the system numbers
// outgoing connections, so that a server that is down for a moment finds its port free again. A run's workers and its
// main process draw from ports of their own, and none is given twice: until a server listens, nothing else holds it.
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

const firstPort = 20_000
const lastPort = 31_999
/** One for the main process, which has no number, and one for each of the two workers of vitest.config.ts. */
const shares = 3
const ownShare = Number(process.env['VITEST_POOL_ID'] ?? 0) % shares
const given = new Set<number>()

export async function findFreePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = firstPort + ownShare + shares * randomInt((lastPort + 1 - firstPort) / shares)
    if (given.has(port)) continue
    // Before it is tried, so that a second call that runs meanwhile does not try it too.
    given.add(port)
    if (await canListen(port)) return port
  }
  throw new Error(`no free port found between ${firstPort} and ${lastPort}`)
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
