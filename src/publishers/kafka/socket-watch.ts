// Finds out why a client does not connect, while it still tries. kafkajs reports a cause only when it gives up, nine seconds
// later by default, and neither client names the address of a server that accepts connections but is not Kafka. So
// the sockets that a client opens are watched, through a channel of Node's. Those of TLS connections are not in it.
import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'

const SOCKET_OPENED = 'net.client.socket'

/** Which watch a socket belongs to. */
const opening = new AsyncLocalStorage<SocketWatch>()

/** A connection attempt of the client. */
interface Attempt {
  readonly host: string | null
  /** Host and port, once they are known. */
  readonly address: string | null
  readonly hasAnswered: boolean
}

export class SocketWatch {
  /** The last error of each address, the newest last. */
  readonly #errors = new Map<string | null, Error>()
  #current: Attempt | null = null

  /** Why the client has not connected yet; null while it tries an address that may still respond. */
  get error(): Error | null {
    if (this.#current && !this.#errors.has(this.#current.address)) return null
    return [...this.#errors.values()].at(-1) ?? null
  }

  /** Watches the sockets that `connect` opens, until it settles. */
  async during<T>(connect: () => Promise<T>): Promise<T> {
    const watch = (message: unknown) => {
      if (opening.getStore() === this) this.#watch((message as { socket: Socket }).socket)
    }
    subscribe(SOCKET_OPENED, watch)
    try {
      return await opening.run(this, connect)
    } finally {
      unsubscribe(SOCKET_OPENED, watch)
    }
  }

  #watch(socket: Socket): void {
    const attempt = { host: null, address: null, hasAnswered: false } as {
      -readonly [Key in keyof Attempt]: Attempt[Key]
    }
    // Clients try one address at a time, and go on to the next when one takes too long.
    const before = this.#current
    if (before?.address && !before.hasAnswered) {
      this.#failed(before, new Error(`got no response from ${before.address}`))
    }
    this.#current = attempt
    socket.once('lookup', (...[, , , host]: [Error | null, string, unknown, string]) => {
      attempt.host = host
    })
    socket.on('connectionAttempt', (ip: string, port: number) => {
      attempt.address = `${attempt.host ?? ip}:${port}`
    })
    socket.once('data', (chunk: Buffer) => {
      attempt.hasAnswered = true
      // A response begins with its length, which is below 16 MB.
      if (chunk[0] !== 0) this.#failed(attempt, new Error(notKafka(attempt)))
    })
    socket.once('error', (error) => {
      this.#failed(attempt, attempt.address ? nameable(error, attempt.address) : flatten(error))
    })
    // A connection that ends after a response ends for a reason that the client knows, such as wrong credentials.
    socket.once('end', () => {
      if (!attempt.hasAnswered) this.#failed(attempt, new Error(closedBy(attempt)))
    })
  }

  #failed(attempt: Attempt, error: Error): void {
    this.#errors.delete(attempt.address)
    this.#errors.set(attempt.address, error)
    if (this.#current === attempt) this.#current = null
  }
}

function notKafka({ address }: Attempt): string {
  return `${address} responded, but not like a Kafka broker; check that the address is that of a Kafka broker, and whether its listener uses TLS`
}

function closedBy({ address }: Attempt): string {
  return `${address} closed the connection before it responded; check that the address is that of a Kafka broker, and whether its listener uses TLS`
}

/** Errors of connecting name the address. Those of reading and writing do not. */
function nameable(thrown: Error, address: string): Error {
  const error = flatten(thrown)
  if ('address' in error || error.message.includes(address)) return error
  return new Error(`the connection to ${address} failed: ${error.message}`, { cause: error })
}

/** A host with several addresses has an error for each, and one without a message for all. */
function flatten(error: Error): Error {
  return error instanceof AggregateError ? (error.errors[0] as Error) : error
}
