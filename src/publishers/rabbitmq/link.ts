// The way to RabbitMQ. Each send uses the current connection, or opens one that all later sends share. There are no
// pauses between attempts here, because the outbox probes an unreachable destination at its own pace.
import type { ChannelModel } from 'amqplib'
import { formatDuration } from '../../checks/duration.ts'
import { toError } from '../../errors.ts'
import { raceTimeout } from '../../runtime/race-timeout.ts'
import type { Fate } from './channel.ts'
import { type ConnectionLimits, RabbitConnection } from './connection.ts'
import { outOfReach } from './errors.ts'
import type { RabbitMessage } from './message.ts'

export class RabbitLink {
  readonly #connect: () => Promise<ChannelModel>
  readonly #limits: ConnectionLimits
  readonly #connections = new Set<RabbitConnection>()
  #current: Promise<RabbitConnection> | null = null

  constructor(connect: () => Promise<ChannelModel>, limits: ConnectionLimits) {
    this.#connect = connect
    this.#limits = limits
  }

  async prepare(exchange: string): Promise<void> {
    const connection = await this.#take()
    await connection.prepare(exchange)
  }

  /** Never rejects. */
  async send(message: RabbitMessage): Promise<Fate> {
    let connection: RabbitConnection
    try {
      connection = await this.#take()
      // The connection may have been lost between its opening and its use.
      if (!connection.isFit) connection = await this.#take()
    } catch (thrown) {
      return outOfReach(toError(thrown))
    }
    return await connection.send(message)
  }

  async disconnect(): Promise<void> {
    const current = this.#current
    this.#current = null
    // Not those that another outbox opens meanwhile, also while the last one is still connecting.
    const open = new Set(this.#connections)
    await current?.then(
      (connection) => open.add(connection),
      () => {},
    )
    await Promise.all([...open].map((connection) => connection.close()))
    for (const connection of open) this.#connections.delete(connection)
  }

  #take(): Promise<RabbitConnection> {
    if (this.#current) return this.#current
    const opening = this.#open(() => {
      if (this.#current === opening) this.#current = null
    })
    this.#current = opening
    return opening
  }

  async #open(onUnfit: () => void): Promise<RabbitConnection> {
    try {
      const model = await this.#connectInTime()
      const connection = new RabbitConnection(model, this.#limits, onUnfit)
      model.on('close', () => this.#connections.delete(connection))
      this.#connections.add(connection)
      return connection
    } catch (error) {
      onUnfit()
      throw error
    }
  }

  async #connectInTime(): Promise<ChannelModel> {
    const { openMs } = this.#limits
    const connecting = this.#connect()
    const model = await raceTimeout(connecting, openMs)
    if (model !== 'late') return model
    connecting.then(closeLate, () => {})
    throw new Error(`no connection within ${formatDuration(openMs)}`)
  }
}

function closeLate(model: ChannelModel): void {
  model.on('error', () => {})
  void model.close().catch(() => {})
}
