// Where contenders meet: one Postgres and one Kafka for all, a fresh database and a fresh topic for each turn, and
// a look at the topic afterwards: what was lost or came twice stands beside the figure.
import { setTimeout as delay } from 'node:timers/promises'
import postgres from 'postgres'
import { type KafkaServer, startKafka } from '../test/support/servers/kafka-server.ts'
import { type PostgresServer, startPostgres } from '../test/support/servers/postgres-server.ts'
import { closeLater } from '../test/support/run/run-to-verdict.ts'
import { chosenKafka } from '../test/support/servers/server-versions.ts'
import { createTopic } from '../test/support/servers/topic-reader.ts'
import { type Arrivals, countArrivals } from './arrivals.ts'
import type { ContenderName } from './contender.ts'
import { type DrainRequest, watchAcks } from './drain-watch.ts'
import { dropDatabase } from './drop-database.ts'
import type {
  Assignment,
  ClaimsResult,
  Job,
  JobResult,
  LoadResult,
  OverheadResult,
  PollsResult,
} from './job.ts'
import type { HistoryFigures } from './results.ts'
import { fillHistory, restoreHistory, settle } from './published-rows.ts'
import { ContenderProcess } from './run-process.ts'
import { EMPTY_SCENE, fillScene, restoreScene, type Scene } from './scenes.ts'
import { readCost, type ServerCost, watchBackends } from './server-cost.ts'

const PARTITIONS = 6
const POSTGRES_SETTINGS = {
  wal_level: 'logical',
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.track_utility': 'on',
  shared_buffers: '1GB',
  max_wal_size: '8GB',
}
/** As a broker is run; the tests have one that starts quickly instead. */
const JAVA_FLAGS = ['-Xms1g', '-Xmx1g', '-XX:+UseG1GC']
/** Makes the outbox table and leaves it empty. */
const MAKE_TABLE: Job = { kind: 'leave-behind', rows: 0, payloadBytes: 0 }
/** They have no table: what they send is in their memory. */
const FROM_MEMORY: readonly ContenderName[] = ['kafkajs-only', 'platformatic-only']
/** Long enough to record what was acked last. */
const RECORD_MS = 500

export interface Variant {
  readonly contender: ContenderName
  readonly tuned: boolean
}

export interface DrainResult {
  readonly rowsPerSecond: number
  readonly arrivals: Arrivals
  /** CPU of all backends, for one event; null where it cannot be measured. */
  readonly postgresCpuUs: number | null
}

export class Arena {
  readonly #postgres: PostgresServer
  readonly #kafka: KafkaServer
  readonly #admin: postgres.Sql
  readonly #histories = new Map<number, Place>()
  readonly #scenes = new Map<Scene, Place>()
  #turns = 0

  private constructor(server: PostgresServer, kafka: KafkaServer) {
    this.#postgres = server
    this.#kafka = kafka
    this.#admin = postgres(server.url, { max: 1, onnotice: () => {} })
    closeLater(() => this.#admin.end())
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

  async load(variant: Variant, job: Extract<Job, { kind: 'load' }>) {
    return await this.#inDatabase(async (place) => {
      const process = new ContenderProcess({ ...variant, ...place, job })
      const cost = await this.#costOf(process, place)
      const result = await process.result<LoadResult>()
      const sends = variant.contender !== 'postgres-only'
      const arrivals = sends ? await this.#countArrivals(place.topic, result.emitted) : null
      return { ...result, cost, arrivals }
    })
  }

  async overhead(units: number): Promise<OverheadResult> {
    return await this.#inDatabase(async (place) => {
      const job = { kind: 'overhead', units } as const
      return await runThrough<OverheadResult>({ ...OURS, ...place, job })
    })
  }

  /** Statements per second while there is nothing to do. */
  async idle(seconds: number): Promise<number> {
    return await this.#inDatabase(async (place) => {
      const process = new ContenderProcess({ ...OURS, ...place, job: { kind: 'idle', seconds } })
      const { statements } = await this.#costOf(process, place)
      return statements / seconds
    })
  }

  /** Rows that were left behind, sent by so many instances at once, for no longer than `limitSeconds`. */
  async drain(variant: Variant, request: DrainRequest): Promise<DrainResult> {
    return await this.#inDatabase((place) => this.#drainIn(place, variant, request))
  }

  /** A table with so many published rows, for the rounds that follow. */
  async fillHistory(published: number): Promise<void> {
    const place = await this.#makePlace()
    await runThrough({ ...OURS, ...place, job: MAKE_TABLE })
    await fillHistory(place.databaseUrl, published)
    this.#histories.set(published, place)
  }

  /** An idle poll and a drain in that table. */
  async history(published: number, rows: number): Promise<Omit<HistoryFigures, 'published'>> {
    // A topic for each, as all of them count their events from 0.
    const topic = await this.#makeTopic()
    const place = { ...this.#histories.get(published)!, topic }
    const job = { kind: 'polls', rounds: 200 } as const
    const { pollMs } = await runThrough<PollsResult>({ ...OURS, ...place, job })
    const request = { rows, payloadBytes: 100, limitSeconds: 120 }
    const { rowsPerSecond, arrivals } = await this.#drainIn(place, OURS, request)
    await restoreHistory(place.databaseUrl)
    return { pollMs, rowsPerSecond, ...arrivals }
  }

  /** A table with something in the way of claims, for the rounds that follow. */
  async fillScene(scene: Scene, rows: number): Promise<void> {
    const place = await this.#makePlace()
    await runThrough({ ...OURS, ...place, job: MAKE_TABLE })
    closeLater(await fillScene(place.databaseUrl, scene, rows))
    this.#scenes.set(scene, place)
  }

  /** Claims in that table. */
  async claims(scene: Scene, claims: number): Promise<ClaimsResult> {
    const place = this.#scenes.get(scene)!
    const emptyUrl = scene === EMPTY_SCENE ? null : this.#scenes.get(EMPTY_SCENE)!.databaseUrl
    const job = { kind: 'claims', scene, claims, emptyUrl } as const
    const result = await runThrough<ClaimsResult>({ ...OURS, ...place, job })
    await restoreScene(place.databaseUrl, place.topic)
    if (emptyUrl !== null) await restoreScene(emptyUrl, place.topic)
    return result
  }

  async #drainIn(place: Place, variant: Variant, request: DrainRequest): Promise<DrainResult> {
    const { rows, payloadBytes, instances = 1 } = request
    const inMemory = FROM_MEMORY.includes(variant.contender)
    const assignment = { ...variant, ...place }
    if (!inMemory) {
      await runThrough({ ...assignment, job: { kind: 'leave-behind', rows, payloadBytes } })
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
    // What was still waiting when the time was up is not lost.
    const arrivals = await this.#countArrivals(place.topic, Math.min(last.acked, rows))
    // Of what two instances have sent both have counted it.
    const sent = Math.min(last.acked, arrivals.delivered) - from.acked
    const rowsPerSecond = (sent / (last.at - from.at)) * 1_000
    return { rowsPerSecond, arrivals, postgresCpuUs: cpuUs === null ? null : cpuUs / paidFor }
  }

  async #watchDrain(place: Place, processes: readonly ContenderProcess[], request: DrainRequest) {
    const acked = () => processes.reduce((sum, process) => sum + process.acked, 0)
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

  /** What a job costs the server, once it is warm and until its process has ended. */
  async #costOf(process: ContenderProcess, place: Place): Promise<ServerCost> {
    await process.ready
    const before = await readCost(this.#admin, databaseOf(place))
    process.say('go')
    await process.result()
    const after = await readCost(this.#admin, databaseOf(place))
    return {
      statements: after.statements - before.statements,
      walBytes: after.walBytes - before.walBytes,
    }
  }

  #countArrivals(topic: string, expected: number): Promise<Arrivals> {
    return countArrivals(this.#kafka.directBrokers, topic, expected)
  }

  async #inDatabase<T>(work: (place: Place) => Promise<T>): Promise<T> {
    const place = await this.#makePlace()
    try {
      return await work(place)
    } finally {
      await dropDatabase(this.#admin, databaseOf(place))
    }
  }

  /** A database and a topic, of one name. */
  async #makePlace(): Promise<Place> {
    const topic = await this.#makeTopic()
    await this.#admin.unsafe(`create database ${topic}`)
    const url = new URL(this.#postgres.url)
    url.pathname = `/${topic}`
    return { databaseUrl: url.href, brokers: this.#kafka.brokers, topic }
  }

  async #makeTopic(): Promise<string> {
    const topic = `bench_${(this.#turns += 1)}`
    await createTopic(this.#kafka.directBrokers, topic, PARTITIONS)
    return topic
  }
}

type Place = Pick<Assignment, 'databaseUrl' | 'brokers' | 'topic'>

function databaseOf({ databaseUrl }: Place): string {
  return new URL(databaseUrl).pathname.slice(1)
}

export const OURS: Variant = { contender: 'aftercommit', tuned: false }

async function runThrough<T extends JobResult>(assignment: Assignment): Promise<T> {
  const process = new ContenderProcess(assignment)
  await process.ready
  process.say('go')
  return await process.result<T>()
}
