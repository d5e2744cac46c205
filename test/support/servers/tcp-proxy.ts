// A TCP proxy on loopback that fails on command, for what no server can be asked to do: a connection
// that breaks between a COMMIT and its answer, a peer that is gone without a word, a slow network.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { findFreePort } from './free-port.ts'

export type Verdict = 'forward' | 'drop-and-cut' | 'forward-and-cut'

export type TcpProxy = {
  /** Where clients connect. */
  readonly port: number
  /** Destroys all live connections; new ones are accepted. */
  cut(): void
  /** Destroys all live connections and refuses new ones. */
  refuse(): Promise<void>
  /** Keeps sockets open and swallows every byte and every end, of live and of new connections. */
  halfOpen(): void
  /** Back to normal for new connections. Those that were half-open stay so: bytes are missing. */
  accept(): Promise<void>
  /** Holds back each chunk, in both directions, for so long. */
  delay(ms: number): void
  /**
   * Judges each chunk from a client; null judges no more. Both cuts destroy the client's side.
   * `forward-and-cut` first gets the chunk to the server and waits for its answer, which is swallowed.
   */
  intercept(judge: ((chunk: Buffer) => Verdict) | null): void
  stop(): Promise<void>
}

type Connection = { client: Socket; server: Socket | null; silent: boolean }

export async function startProxy(target: { port: number; host?: string }): Promise<TcpProxy> {
  const connections = new Set<Connection>()
  let silent = false
  let delayMs = 0
  let judge: ((chunk: Buffer) => Verdict) | null = null

  // Half-open allowed, so that the end of one direction is passed on as such.
  const listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const connection: Connection = { client, server: null, silent }
    connections.add(connection)
    client.on('error', () => {})
    if (silent) {
      client.resume()
      return
    }
    const host = target.host ?? '127.0.0.1'
    const server = connect({ host, port: target.port, allowHalfOpen: true, noDelay: true })
    server.on('error', () => {})
    connection.server = server
    forward(connection, client, server, (chunk) => judge?.(chunk) ?? 'forward')
    forward(connection, server, client, () => 'forward')
  })

  function forward(
    connection: Connection,
    from: Socket,
    to: Socket,
    decide: (chunk: Buffer) => Verdict,
  ): void {
    let queue = Promise.resolve()
    const afterDelay = (action: () => void) => {
      const due = performance.now() + delayMs
      queue = passInTurn(queue, due, () => {
        if (!connection.silent) action()
      })
    }
    from.on('data', (chunk: Buffer) => {
      if (connection.silent) return
      const verdict = decide(chunk)
      if (verdict === 'forward') afterDelay(() => pass(chunk, from, to))
      else if (verdict === 'drop-and-cut') destroy(connection)
      else afterDelay(() => cutAfter(connection, chunk))
    })
    from.on('end', () => afterDelay(() => to.end()))
    from.on('close', (failed: boolean) => {
      afterDelay(() => (failed ? destroy(connection) : to.end()))
      if (to.destroyed) connections.delete(connection)
    })
  }

  function cutAfter(connection: Connection, chunk: Buffer): void {
    const { client, server } = connection
    connection.silent = true
    // Out of reach of cut() and stop(): closing before the answer might reset the connection before
    // the server has read the chunk.
    connections.delete(connection)
    server?.write(chunk, () => client.destroy())
    server?.once('data', () => server.end())
    server?.unref()
  }

  function destroy(connection: Connection): void {
    connections.delete(connection)
    connection.silent = true
    connection.client.destroy()
    connection.server?.destroy()
  }

  function cut(): void {
    for (const connection of connections) destroy(connection)
  }

  async function close(): Promise<void> {
    const closed = listener.listening ? once(listener, 'close') : undefined
    listener.close()
    cut()
    await closed
  }

  async function listen(onPort: number): Promise<void> {
    listener.listen(onPort, '127.0.0.1')
    await once(listener, 'listening')
  }

  const port = await findFreePort()
  await listen(port)
  return {
    port,
    cut,
    refuse: close,
    halfOpen() {
      silent = true
      for (const connection of connections) connection.silent = true
    },
    async accept() {
      silent = false
      if (!listener.listening) await listen(port)
    },
    delay(ms) {
      delayMs = ms
    },
    intercept(next) {
      judge = next
    },
    stop: close,
  }
}

function pass(chunk: Buffer, from: Socket, to: Socket): void {
  if (to.destroyed || to.write(chunk)) return
  from.pause()
  to.once('drain', () => from.resume())
}

async function passInTurn(queue: Promise<void>, due: number, action: () => void): Promise<void> {
  await queue
  const ms = due - performance.now()
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
  action()
}
