// One connection and its channels. It is never repaired: after a refusal has closed a channel, it takes nothing new and
// closes when the rest has settled. amqplib gives the number of a dead channel to the next one while frames of the dead
// one may still wait to be written, and RabbitMQ ends the connection over that.
import type { ChannelModel } from 'amqplib'
import { toError } from '../../errors.ts'
import { raceTimeout } from '../../runtime/race-timeout.ts'
import { type Fate, RabbitChannel } from './channel.ts'
import {
  blocked,
  classifyChannelError,
  lostConnection,
  notConfirmed,
  outOfReach,
} from './errors.ts'
import type { RabbitMessage } from './message.ts'

export interface ConnectionLimits {
  /** The limit for opening a channel. */
  readonly openMs: number
  readonly confirmMs: number
}

/** How long a peer that may be gone gets to respond to a request that costs it nothing. */
export const LIFE_SIGN_MS = 2_000

/** How long to wait for a confirm before checking whether the connection is alive. */
const SUSPICIOUS_MS = 2_000

/** How many frames amqplib buffers per channel before it asks for a pause. A frame is at most 128 KiB. */
const MAX_BUFFERED_FRAMES = 128

export class RabbitConnection {
  readonly #model: ChannelModel
  readonly #limits: ConnectionLimits
  readonly #onUnfit: () => void
  readonly #channels = new Map<string, Promise<RabbitChannel>>()
  readonly #open = new Set<RabbitChannel>()
  #senders = 0
  #asked: Promise<boolean> | null = null
  #closing: Promise<void> | null = null
  #blocked: string | null = null
  #retired = false
  #ended: Error | null = null

  /** `onUnfit` is called when the next send should use another connection. */
  constructor(model: ChannelModel, limits: ConnectionLimits, onUnfit: () => void) {
    this.#model = model
    this.#limits = limits
    this.#onUnfit = onUnfit
    model.on('error', (error) => this.#end(error))
    model.on('close', (error) => this.#end(error ?? new Error('it was closed')))
    model.on('blocked', (reason) => {
      this.#blocked = reason
    })
    model.on('unblocked', () => {
      this.#blocked = null
    })
  }

  get isFit(): boolean {
    return !this.#ended && !this.#retired
  }

  async send(message: RabbitMessage): Promise<Fate> {
    this.#senders += 1
    try {
      return await this.#send(message)
    } finally {
      this.#senders -= 1
      this.#closeIfIdle()
    }
  }

  /** Opens the channel for an exchange. Rejects if the exchange does not exist. */
  async prepare(exchange: string): Promise<void> {
    await this.#channelFor(exchange)
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  async #close(): Promise<void> {
    this.#withdraw()
    if (this.#ended) return
    const closing = this.#model.close().catch(() => {})
    if ((await raceTimeout(closing, LIFE_SIGN_MS)) === 'late') {
      this.#abandon(new Error('it did not respond when it was closed'))
    }
  }

  async #send(message: RabbitMessage): Promise<Fate> {
    // A message written now would sit in some buffer until RabbitMQ resumes reading.
    if (this.#blocked !== null) return blocked(this.#blocked)
    let channel: RabbitChannel
    try {
      channel = await this.#channelFor(message.exchange)
    } catch (thrown) {
      if (this.#ended) return lostConnection(this.#ended)
      const error = toError(thrown) as Error & { code?: unknown }
      const answered = typeof error.code === 'number'
      return answered ? classifyChannelError(message, error, false) : outOfReach(error)
    }
    const suspicion = setTimeout(() => void this.#retireIfSilent(), SUSPICIOUS_MS).unref()
    const sending = channel.send(message)
    const fate = await raceTimeout(sending, this.#limits.confirmMs)
    clearTimeout(suspicion)
    if (fate !== 'late') return fate
    await this.#giveUp(channel, message)
    // A confirm may have arrived meanwhile, and then it counts.
    return await sending
  }

  // A connection that may be dead is not used for new sends, but its confirms may still arrive.
  async #retireIfSilent(): Promise<void> {
    if (this.#blocked !== null || !this.isFit) return
    if (!(await this.#answers()) && this.#blocked === null) this.#retire()
  }

  // One queue that does not confirm is no reason to give up on all others, but a dead connection is. A blocked one is
  // kept: RabbitMQ resumes reading where it stopped, and each new connection would leave another copy there.
  async #giveUp(channel: RabbitChannel, message: RabbitMessage): Promise<void> {
    const alive = this.#blocked === null && this.isFit && (await this.#answers())
    const failure = notConfirmed(message, alive ? 'topic' : 'broker')
    channel.giveUp(message, failure)
    if (!alive && this.#blocked === null) this.#abandon(failure.error)
  }

  #answers(): Promise<boolean> {
    return (this.#asked ??= this.#askForLifeSign())
  }

  async #askForLifeSign(): Promise<boolean> {
    const opening = this.#model.createChannel().then(
      (channel) => {
        channel.on('error', () => {})
        void channel.close().catch(() => {})
        return true
      },
      () => false,
    )
    const answer = await raceTimeout(opening, LIFE_SIGN_MS)
    this.#asked = null
    return answer === true
  }

  #channelFor(exchange: string): Promise<RabbitChannel> {
    const known = this.#channels.get(exchange)
    if (known) return known
    const opening = this.#openChannel(exchange)
    this.#channels.set(exchange, opening)
    opening.catch(() => this.#channels.delete(exchange))
    return opening
  }

  async #openChannel(exchange: string): Promise<RabbitChannel> {
    if (!this.isFit) throw new Error('the connection accepts nothing new')
    const opening = this.#openConfirmChannel(exchange)
    const channel = await raceTimeout(opening, this.#limits.openMs)
    if (channel !== 'late') return channel
    opening.catch(() => {})
    const error = new Error('no channel could be opened in time')
    if (this.#blocked === null) this.#abandon(error)
    throw error
  }

  async #openConfirmChannel(exchange: string): Promise<RabbitChannel> {
    const channel = await this.#model.createConfirmChannel({ highWaterMark: MAX_BUFFERED_FRAMES })
    const ours = new RabbitChannel(channel, () => this.#retire())
    this.#open.add(ours)
    channel.on('close', () => {
      this.#open.delete(ours)
      this.#channels.delete(exchange)
    })
    // A missing exchange shows here, before anything is in flight that would be in doubt.
    if (exchange !== '') await channel.checkExchange(exchange)
    return ours
  }

  #retire(): void {
    if (!this.isFit) return
    this.#withdraw()
    this.#closeIfIdle()
  }

  /** Takes nothing new from here on. Does not close: close() would call itself, and not wait for the first call. */
  #withdraw(): void {
    if (!this.isFit) return
    this.#retired = true
    this.#onUnfit()
  }

  #closeIfIdle(): void {
    if (this.#retired && this.#senders === 0) void this.close()
  }

  #abandon(error: Error): void {
    this.#end(error)
    this.#socket?.destroy(error)
  }

  #end(error: Error): void {
    if (this.#ended) return
    this.#ended = error
    for (const channel of this.#open) channel.end(error)
    this.#open.clear()
    if (!this.#retired) this.#onUnfit()
    // amqplib ends a socket and waits for the peer to do the same, which a dead peer never does.
    setTimeout(() => this.#socket?.destroy(), LIFE_SIGN_MS).unref()
  }

  get #socket(): { destroy(error?: Error): void } | undefined {
    return (this.#model.connection as { stream?: { destroy(error?: Error): void } }).stream
  }
}
