// One confirm channel, for one exchange: RabbitMQ closes a channel for a single message that it does not take,
// and everything unconfirmed on it is in doubt then. An event counts as sent when it was confirmed and not returned.
import type { ConfirmChannel } from 'amqplib'
import { toError } from '../errors.ts'
import {
  classifyChannelError,
  lostConnection,
  nacked,
  permanent,
  unroutable,
} from './rabbitmq-errors.ts'
import type { RabbitMessage } from './rabbitmq-message.ts'
import type { PublishFailure } from './publisher.ts'

/** What became of a message; null when RabbitMQ has taken it over. */
export type Fate = PublishFailure | null

interface InFlight {
  readonly message: RabbitMessage
  readonly fate: Promise<Fate>
  readonly settle: (fate: Fate) => void
  written: boolean
  returned: boolean
  settled: boolean
}

/** What the end of a channel means for a message on it, which may have been the only one. */
type Verdict = (message: RabbitMessage, alone: boolean) => PublishFailure

export class RabbitChannel {
  readonly #channel: ConfirmChannel
  readonly #inFlight = new Map<string, InFlight>()
  #room: Deferred<void> | null = null
  #used = false
  #closed: Verdict | null = null

  /** `onRefused` is called when RabbitMQ closed the channel while frames of it may lie in amqplib's buffers. */
  constructor(channel: ConfirmChannel, onRefused: () => void) {
    this.#channel = channel
    channel.on('return', ({ properties }) => {
      const returned = this.#inFlight.get(String(properties.messageId))
      if (returned) returned.returned = true
    })
    channel.on('drain', () => this.#makeRoom())
    channel.on('error', (error) => {
      this.#close((message, alone) => classifyChannelError(message, error, alone))
      if (this.#used) onRefused()
    })
    // Before amqplib's own listener, which calls back for everything unconfirmed as it does for a nack.
    channel.prependListener('close', () => this.end(new Error('the channel was closed')))
  }

  /** Never rejects. May take for ever; whoever waits sets the limit. */
  async send(message: RabbitMessage): Promise<Fate> {
    if (this.#closed) return this.#closed(message, false)
    // A return is matched by the message id, so no id is on its way twice.
    const same = this.#inFlight.get(message.id)
    if (same) return await same.fate
    const inFlight = this.#begin(message)
    void this.#write(inFlight)
    return await inFlight.fate
  }

  /** For one that was waited for long enough. It is not written any more; a confirm that comes later is not heard. */
  giveUp(message: RabbitMessage, failure: PublishFailure): void {
    this.#inFlight.get(message.id)?.settle(failure)
  }

  /** Settles everything that is on its way. */
  end(error: Error): void {
    this.#close(() => lostConnection(error))
  }

  #begin(message: RabbitMessage): InFlight {
    const { promise: fate, resolve } = defer<Fate>()
    const settle = (outcome: Fate) => {
      if (inFlight.settled) return
      inFlight.settled = true
      this.#inFlight.delete(message.id)
      resolve(outcome)
    }
    const inFlight = { message, fate, settle, written: false, returned: false, settled: false }
    this.#inFlight.set(message.id, inFlight)
    return inFlight
  }

  async #write(inFlight: InFlight): Promise<void> {
    while (this.#room && !inFlight.settled) await this.#room.promise
    if (inFlight.settled) return
    const { exchange, routingKey, content, properties } = inFlight.message
    const onConfirm = (error: unknown) => inFlight.settle(judge(inFlight, error))
    inFlight.written = this.#used = true
    try {
      const room = this.#channel.publish(exchange, routingKey, content, properties, onConfirm)
      if (!room) this.#room ??= defer()
    } catch (thrown) {
      inFlight.settle(judgeThrown(toError(thrown)))
    }
  }

  #close(verdict: Verdict): void {
    if (this.#closed) return
    this.#closed = verdict
    const doomed = [...this.#inFlight.values()]
    const alone = doomed.filter(({ written }) => written).length === 1
    for (const { message, written, settle } of doomed) settle(verdict(message, written && alone))
    this.#makeRoom()
  }

  #makeRoom(): void {
    const room = this.#room
    this.#room = null
    room?.resolve()
  }
}

// RabbitMQ sends the return of a message before its confirm.
function judge({ message, returned }: InFlight, error: unknown): Fate {
  if (error) return nacked(message)
  return returned ? unroutable(message) : null
}

// amqplib encodes a message before it writes any of it: what it cannot encode, nobody has got.
function judgeThrown(error: Error): PublishFailure {
  if (error.name === 'IllegalOperationError') return lostConnection(error)
  return permanent(`AMQP cannot carry this message: ${error.message}`, error)
}

interface Deferred<T> {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
}

function defer<T>(): Deferred<T> {
  let resolve!: (value: T) => void
  const promise = new Promise<T>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
