// A loopback port that is free now and stays so. It lies below the range from which the system numbers
// outgoing connections, so that a server that is down for a moment finds its port free again.
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

const firstPort = 20_000
const lastPort = 31_999

export async function findFreePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(firstPort, lastPort + 1)
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
