// One confirm channel for one exchange. RabbitMQ closes a channel over a single message that it refuses, which leaves
// the outcome of everything unconfirmed on it unknown. An event counts as sent when it was confirmed and not returned.
import type { ConfirmChannel } from 'amqplib'
import { toError } from '../../errors.ts'
import { classifyChannelError, lostConnection, nacked, permanent, unroutable } from './errors.ts'
import type { RabbitMessage } from './message.ts'
import type { PublishFailure } from '../../event/publish-result.ts'

/** The outcome of a message; null when RabbitMQ has taken it over. */
export type Fate = PublishFailure | null

interface InFlight {
  readonly message: RabbitMessage
  readonly fate: Promise<Fate>
  readonly settle: (fate: Fate) => void
  written: boolean
  returned: boolean
  settled: boolean
}

/** What the end of a channel means for a message on it. `alone`: whether it was the only one. */
type Verdict = (message: RabbitMessage, alone: boolean) => PublishFailure

export class RabbitChannel {
  readonly #channel: ConfirmChannel
  readonly #inFlight = new Map<string, InFlight>()
  #room: Deferred<void> | null = null
  #used = false
  #closed: Verdict | null = null

  /** `onRefused` is called when RabbitMQ closed the channel while amqplib's buffers may still hold frames of it. */
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
    // Runs before amqplib's own listener, which calls back for everything unconfirmed as if it were a nack.
    channel.prependListener('close', () => this.end(new Error('the channel was closed')))
  }

  /** Never rejects. May never settle, so the caller has to set a limit. */
  async send(message: RabbitMessage): Promise<Fate> {
    if (this.#closed) return this.#closed(message, false)
    // A return is matched by message id, so no id may be in flight twice.
    const same = this.#inFlight.get(message.id)
    if (same) return await same.fate
    const inFlight = this.#begin(message)
    void this.#write(inFlight)
    return await inFlight.fate
  }

  /** Gives up on a message after its timeout. It is no longer written, and a later confirm is ignored. */
  giveUp(message: RabbitMessage, failure: PublishFailure): void {
    this.#inFlight.get(message.id)?.settle(failure)
  }

  /** Settles everything in flight. */
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

// amqplib encodes a message before it writes any of it, so a message that it cannot encode was not sent.
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
