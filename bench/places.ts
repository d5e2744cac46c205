// Where a turn takes place: a fresh database and a fresh topic, looked at and taken away afterwards.
import type postgres from 'postgres'
import { createTopic } from '../test/support/servers/topic-reader.ts'
import { dropDatabase } from './drop-database.ts'
import type { Assignment } from './job.ts'

const PARTITIONS = 6

export type Place = Pick<Assignment, 'databaseUrl' | 'brokers' | 'topic'>

export interface Servers {
  readonly admin: postgres.Sql
  readonly postgresUrl: string
  readonly brokers: string[]
  /** Without what the tests put in between. */
  readonly directBrokers: string[]
}

export class Places {
  readonly #servers: Servers
  #made = 0
  #aftermath = Promise.resolve()

  constructor(servers: Servers) {
    this.#servers = servers
  }

  /** A database and a topic, of one name. */
  async make(): Promise<Place> {
    const { admin, postgresUrl, brokers } = this.#servers
    const topic = await this.makeTopic()
    await admin.unsafe(`create database ${topic}`)
    const url = new URL(postgresUrl)
    url.pathname = `/${topic}`
    return { databaseUrl: url.href, brokers, topic }
  }

  async makeTopic(): Promise<string> {
    const topic = `bench_${(this.#made += 1)}`
    await createTopic(this.#servers.directBrokers, topic, PARTITIONS)
    return topic
  }

  /** Runs `work` in a place that is taken away later. */
  async within<T>(work: (place: Place) => Promise<T>): Promise<T> {
    const place = await this.make()
    try {
      return await work(place)
    } finally {
      this.later(() => this.remove(place))
    }
  }

  async remove(place: Place): Promise<void> {
    await dropDatabase(this.#servers.admin, databaseOf(place))
  }

  /** Runs `work` while the next process starts and gets warm. None is measured before it is over. */
  later(work: () => Promise<void>): void {
    this.#aftermath = this.#aftermath.then(work)
    // It fails for the next one that waits for it.
    this.#aftermath.catch(() => {})
  }

  /** Resolves when nothing of the turns so far is left to do. */
  async finish(): Promise<void> {
    await this.#aftermath
  }
}

export function databaseOf({ databaseUrl }: Place): string {
  return new URL(databaseUrl).pathname.slice(1)
}
