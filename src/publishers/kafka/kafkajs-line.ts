// A kafkajs producer that can say why it does not connect. kafkajs keeps trying for nine seconds by default and reports the
// cause only when it gives up, so the errors of its sockets are watched meanwhile. Those of TLS connections cannot be.
import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import type { Producer } from 'kafkajs'
import type { Connectable } from './producer-lines.ts'

const SOCKET_OPENED = 'net.client.socket'

/** Which line opens a socket. */
const opening = new AsyncLocalStorage<KafkajsLine>()

export class KafkajsLine implements Connectable {
  readonly producer: Producer
  #error: Error | null = null

  constructor(producer: Producer) {
    this.producer = producer
  }

  get connectionError(): Error | null {
    return this.#error
  }

  async connect(): Promise<void> {
    const watch = (message: unknown) => {
      if (opening.getStore() !== this) return
      ;(message as { socket: Socket }).socket.once('error', (error) => {
        this.#error = nameable(error)
      })
    }
    subscribe(SOCKET_OPENED, watch)
    try {
      await opening.run(this, () => this.producer.connect())
    } finally {
      unsubscribe(SOCKET_OPENED, watch)
    }
  }

  disconnect(): Promise<void> {
    return this.producer.disconnect()
  }
}

/** A host with several addresses has an error for each, and one without a message for all. */
function nameable(error: Error): Error {
  return error instanceof AggregateError ? (error.errors[0] as Error) : error
}
