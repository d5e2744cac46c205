// A primary and its standby behind one address, which stands for a name that DNS resolves, or an address that moves. The
// primary loses its power, the standby is promoted, and the address moves.
import { type PostgresServer, type StandbyServer, startPostgres } from './postgres-server.ts'
import { startProxy, type TcpProxy } from './tcp-proxy.ts'

/** Whether a COMMIT waits until the standby has it on disk. */
export const STANDBY_KINDS = ['synchronous', 'asynchronous'] as const
export type StandbyKind = (typeof STANDBY_KINDS)[number]

const SETTINGS = {
  // Strict: with no standby there, a COMMIT waits for the next one.
  synchronous: { synchronous_standby_names: '*' },
  asynchronous: {},
}

type Follower = { readonly standby: StandbyServer; readonly link: TcpProxy }

export class PostgresPair {
  readonly #target: { port: number }
  readonly #address: TcpProxy
  #primary: PostgresServer
  #follower: Follower
  readonly #parts: { stop(): Promise<void> }[]

  private constructor(
    address: { readonly proxy: TcpProxy; readonly target: { port: number } },
    primary: PostgresServer,
    follower: Follower,
  ) {
    this.#target = address.target
    this.#address = address.proxy
    this.#primary = primary
    this.#follower = follower
    this.#parts = [address.proxy, primary, follower.link, follower.standby]
  }

  static async start(kind: StandbyKind): Promise<PostgresPair> {
    const primary = await startPostgres({ settings: SETTINGS[kind] })
    const target = { port: primary.port }
    const proxy = await startProxy(target)
    return new PostgresPair({ proxy, target }, primary, await follow(primary))
  }

  /** The address that clients know. */
  get url(): string {
    return this.#primary.url.replace(`:${this.#primary.port}`, `:${this.#address.port}`)
  }

  get primary(): PostgresServer {
    return this.#primary
  }

  get standby(): StandbyServer {
    return this.#follower.standby
  }

  /** What the standby follows the primary through. */
  get link(): TcpProxy {
    return this.#follower.link
  }

  /** The address leads to this server from now on, for new connections. */
  point(server: PostgresServer): void {
    this.#target.port = server.port
  }

  /** Ends all connections that were made by the address. */
  cut(): void {
    this.#address.cut()
  }

  /** The primary dies, and with it what is on its way to the standby; that one takes over, and the address moves. */
  async failOver(): Promise<void> {
    await this.lose()
    this.point(this.#primary)
  }

  /** The same, but the address stays where it is. Returns the server that died. */
  async lose(): Promise<PostgresServer> {
    const old = this.#primary
    this.link.halfOpen()
    await old.powerOff()
    await this.standby.promote()
    this.#primary = this.standby
    return old
  }

  /** A new standby for the server that was promoted. */
  async addStandby(): Promise<void> {
    this.#follower = await follow(this.#primary)
    this.#parts.push(this.link, this.standby)
  }

  async stop(): Promise<void> {
    await Promise.all(this.#parts.map((part) => part.stop()))
  }
}

async function follow(primary: PostgresServer): Promise<Follower> {
  const link = await startProxy({ port: primary.port })
  return { link, standby: await primary.startStandby({ through: link.port }) }
}
