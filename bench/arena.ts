// Where contenders meet: one Postgres and one Kafka for all, a fresh database and a fresh topic for each turn, and
// a look at the topic afterwards: what was lost or came twice stands beside the figure.
import { setTimeout as delay } from 'node:timers/promises'
import postgres from 'postgres'
import { type KafkaServer, startKafka } from '../test/support/servers/kafka-server.ts'
import { type PostgresServer, startPostgres } from '../test/support/servers/postgres-server.ts'
import { closeLater } from '../test/support/run/run-to-verdict.ts'
import { chosenKafka } from '../test/support/servers/server-versions.ts'
import { arrivalsOf, readIds } from './arrivals.ts'
import { type DrainRequest, watchAcks } from './drain-watch.ts'
import type {
  Assignment,
  ClaimsResult,
  Job,
  JobResult,
  Load,
  OverheadResult,
  PollsResult,
} from './job.ts'
import { databaseOf, type Place, Places } from './places.ts'
import { fillHistory, restoreHistory, settle } from './published-rows.ts'
import { type HistoryFigures, nameOf } from './results.ts'
import { ContenderProcess } from './run-process.ts'
import { EMPTY_SCENE, fillScene, restoreScene, type Scene } from './scenes.ts'
import { readCost, watchBackends } from './server-cost.ts'
import { Session } from './session.ts'
import { type DrainResult, FROM_MEMORY, type LoadTurn, OURS, type Variant } from './turn.ts'

const POSTGRES_SETTINGS = {
  wal_level: 'logical',
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.track_utility': 'on',
  shared_buffers: '1GB',
  max_wal_size: '8GB',
  // For the pools of all sessions that are there at the same time.
  max_connections: '300',
}
/** As a broker is run; the tests have one that starts quickly instead. */
const JAVA_FLAGS = ['-Xms1g', '-Xmx1g', '-XX:+UseG1GC']
/** Makes the outbox table and leaves it empty. */
const MAKE_TABLE: Job = { kind: 'leave-behind', rows: 0, payloadBytes: 0 }
/** Long enough to record what was acked last. */
const RECORD_MS = 500

export class Arena {
  readonly #kafka: KafkaServer
  readonly #admin: postgres.Sql
  readonly #places: Places
  readonly #sessions = new Map<string, Session>()
  readonly #histories = new Map<number, Place>()
  readonly #scenes = new Map<Scene, Place>()

  private constructor(server: PostgresServer, kafka: KafkaServer) {
    const admin = postgres(server.url, { max: 1, onnotice: () => {} })
    closeLater(() => admin.end())
    this.#kafka = kafka
    this.#admin = admin
    const { brokers, directBrokers } = kafka
    this.#places = new Places({ admin, postgresUrl: server.url, brokers, directBrokers })
  }

  static async open(): Promise<Arena> {
    const server = await startPostgres({ settings: POSTGRES_SETTINGS })
    closeLater(() => server.stop())
    const kafka = await startKafka({ javaFlags: JAVA_FLAGS })
    closeLater(() => kafka.stop())
    const arena = new Arena(server, kafka)
    await arena.#admin`create extension pg_stat_statements`
    return arena
  }

  async versions(): Promise<Record<string, string>> {
    const [row] = await this.#admin<[{ version: string }]>`
      select current_setting('server_version') as version`
    return { PostgreSQL: row.version, Kafka: chosenKafka() }
  }

  /** A turn in the contender's session, which begins with its first one. */
  async load(variant: Variant, job: Load): Promise<LoadTurn> {
    const session =
      this.#sessions.get(nameOf(variant)) ?? new Session(variant, await this.#places.make())
    this.#sessions.set(nameOf(variant), session)
    const readOwn = () => readCost(this.#admin, databaseOf(session.place))
    try {
      return await session.load(job, () => this.finish(), readOwn)
    } catch (error) {
      // The next turn of this contender begins another one.
      await this.endSession(variant, () => {}).catch(() => {})
      throw error
    }
  }

  /** Ends a session. Calls `looked` when it is known what arrived. */
  async endSession(variant: Variant, looked: () => void): Promise<void> {
    const session = this.#sessions.get(nameOf(variant))
    this.#sessions.delete(nameOf(variant))
    try {
      await session?.end()
    } finally {
      if (session) this.#places.later(() => this.#lookAt(session, variant))
      this.#places.later(async () => looked())
    }
  }

  async #lookAt(session: Session, { contender }: Variant): Promise<void> {
    const { place } = session
    if (contender !== 'postgres-only') session.noteArrivals(await this.#readIds(place))
    await this.#places.remove(place)
  }

  async overhead(units: number): Promise<OverheadResult> {
    return await this.#places.within(async (place) => {
      const job = { kind: 'overhead', units } as const
      return await this.#runThrough<OverheadResult>({ ...OURS, ...place, job })
    })
  }

  /** Statements per second while there is nothing to do. */
  async idle(seconds: number): Promise<number> {
    return await this.#places.within(async (place) => {
      const process = new ContenderProcess({ ...OURS, ...place, job: { kind: 'idle', seconds } })
      await process.ready
      await this.finish()
      const before = await readCost(this.#admin, databaseOf(place))
      process.say('go')
      await process.result()
      const after = await readCost(this.#admin, databaseOf(place))
      return (after.statements - before.statements) / seconds
    })
  }

  /**
   * Rows that were left behind, sent by so many instances at once, for no longer than `limitSeconds`. Hands over the turn
   * once its topic was looked at.
   */
  async drain(
    variant: Variant,
    request: DrainRequest,
    keep: (turn: DrainResult) => void,
  ): Promise<void> {
    await this.#places.within(async (place) => {
      const look = await this.#drainIn(place, variant, request)
      this.#places.later(async () => keep(await look()))
    })
  }

  /** A table with so many published rows, for the rounds that follow. */
  async fillHistory(published: number): Promise<void> {
    const place = await this.#places.make()
    await this.#runThrough({ ...OURS, ...place, job: MAKE_TABLE })
    await fillHistory(place.databaseUrl, published)
    this.#histories.set(published, place)
  }

  /** An idle poll and a drain in that table. */
  async history(
    published: number,
    request: DrainRequest,
  ): Promise<Omit<HistoryFigures, 'published'>> {
    // A topic for each, as all of them count their events from 0.
    const topic = await this.#places.makeTopic()
    const place = { ...this.#histories.get(published)!, topic }
    const job = { kind: 'polls', rounds: 200 } as const
    const { pollMs } = await this.#runThrough<PollsResult>({ ...OURS, ...place, job })
    const look = await this.#drainIn(place, OURS, request)
    const { rowsPerSecond, arrivals } = await look()
    await restoreHistory(place.databaseUrl)
    return { pollMs, rowsPerSecond, ...arrivals }
  }

  /** A table with something in the way of claims, for the rounds that follow. */
  async fillScene(scene: Scene, rows: number): Promise<void> {
    const place = await this.#places.make()
    await this.#runThrough({ ...OURS, ...place, job: MAKE_TABLE })
    closeLater(await fillScene(place.databaseUrl, scene, rows))
    this.#scenes.set(scene, place)
  }

  /** Claims in that table. */
  async claims(scene: Scene, claims: number): Promise<ClaimsResult> {
    const place = this.#scenes.get(scene)!
    const emptyUrl = scene === EMPTY_SCENE ? null : this.#scenes.get(EMPTY_SCENE)!.databaseUrl
    const job = { kind: 'claims', scene, claims, emptyUrl } as const
    const result = await this.#runThrough<ClaimsResult>({ ...OURS, ...place, job })
    await restoreScene(place.databaseUrl, place.topic)
    if (emptyUrl !== null) await restoreScene(emptyUrl, place.topic)
    return result
  }

  /** Resolves when every turn so far was handed over. */
  async finish(): Promise<void> {
    await this.#places.finish()
  }

  /** Returns what looks at the topic. */
  async #drainIn(place: Place, variant: Variant, request: DrainRequest) {
    const { rows, payloadBytes, instances = 1 } = request
    const inMemory = FROM_MEMORY.includes(variant.contender)
    const assignment = { ...variant, ...place }
    if (!inMemory) {
      await this.#runThrough({ ...assignment, job: { kind: 'leave-behind', rows, payloadBytes } })
      await settle(place.databaseUrl)
    }
    const job: Job = { kind: 'drain', ...(inMemory && { fromMemory: { rows, payloadBytes } }) }
    const processes = Array.from(
      { length: instances },
      () => new ContenderProcess({ ...assignment, job }),
    )
    await Promise.all(processes.map((process) => process.ready))
    const { from, last, cpuUs, paidFor } = await this.#watchDrain(place, processes, request)
    await Promise.all(processes.map((process) => process.result()))
    const postgresCpuUs = cpuUs === null ? null : cpuUs / paidFor
    return async (): Promise<DrainResult> => {
      // What was still waiting when the time was up is not lost.
      const arrivals = arrivalsOf(await this.#readIds(place), Math.min(last.acked, rows))
      // Of what two instances have sent both have counted it.
      const sent = Math.min(last.acked, arrivals.delivered) - from.acked
      const rowsPerSecond = (sent / (last.at - from.at)) * 1_000
      return { rowsPerSecond, arrivals, postgresCpuUs }
    }
  }

  async #watchDrain(place: Place, processes: readonly ContenderProcess[], request: DrainRequest) {
    const acked = () => processes.reduce((sum, process) => sum + process.acked, 0)
    await this.finish()
    const cpu = await watchBackends(this.#admin, databaseOf(place))
    try {
      for (const process of processes) process.say('go')
      const [from, last] = await watchAcks(acked, request)
      await delay(RECORD_MS)
      return { from, last, cpuUs: await cpu.end(), paidFor: acked() }
    } finally {
      await cpu.end()
      for (const process of processes) process.say('finish')
    }
  }

  #readIds({ topic }: Place): Promise<number[]> {
    return readIds(this.#kafka.directBrokers, topic)
  }

  async #runThrough<T extends JobResult>(assignment: Assignment): Promise<T> {
    const process = new ContenderProcess(assignment)
    await process.ready
    await this.finish()
    process.say('go')
    return await process.result<T>()
  }
}
