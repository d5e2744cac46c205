// What is done to the service, drawn from the seed: killed and frozen processes, servers that crash, and
// connections that break, stall or go silent. Faults overlap; each ends by itself.
import { setTimeout as delay } from 'node:timers/promises'
import type { KafkaCluster } from '../../support/servers/kafka-cluster.ts'
import type { KafkaNode } from '../../support/servers/kafka-node.ts'
import type { PostgresServer } from '../../support/servers/postgres-server.ts'
import type { TcpProxy } from '../../support/servers/tcp-proxy.ts'
import type { FaultKind } from './arguments.ts'
import type { Crew } from './crew.ts'
import type { Disturbance } from './pauses.ts'
import { type Random, totalWeight } from './random.ts'

export interface Victims {
  readonly crew: Crew
  readonly postgres: PostgresServer
  readonly kafka: KafkaCluster
  readonly postgresProxy: TcpProxy
  /** One in front of each broker. */
  readonly kafkaProxies: readonly TcpProxy[]
}

export interface FaultCounts {
  kills: number
  freezes: number
  pgRestarts: number
  kafkaRestarts: number
  /** Of one broker among several. */
  kafkaFreezes: number
  cuts: number
}

/** Those that come one after another. Pauses go on beside them (pauses.ts). */
type Fault = Exclude<FaultKind, 'pause'>

export class Faults {
  /** When instances could not reach the database. */
  readonly disturbances: Disturbance[] = []
  readonly counts: FaultCounts = {
    kills: 0,
    freezes: 0,
    pgRestarts: 0,
    kafkaRestarts: 0,
    kafkaFreezes: 0,
    cuts: 0,
  }
  readonly #victims: Victims
  readonly #random: Random
  readonly #underWay = new Set<Promise<void>>()
  #servers: Promise<void> = Promise.resolve()

  constructor(victims: Victims, random: Random) {
    this.#victims = victims
    this.#random = random
  }

  /** One after another until the time is up; resolves when the last has ended. */
  async run(ms: number, kinds: readonly FaultKind[]): Promise<void> {
    const choices = kinds.flatMap((kind) => (kind === 'pause' ? [] : this.#faults[kind]))
    if (choices.length === 0) return await delay(ms)
    const end = performance.now() + ms
    // Each kind is as frequent alone as it is among all.
    const pace = totalWeight(Object.values(this.#faults).flat()) / totalWeight(choices)
    while (performance.now() < end) {
      await delay(this.#random.between(300, 2_500) * pace)
      const fault = this.#random.pick(choices)
      const running = fault().finally(() => this.#underWay.delete(running))
      this.#underWay.add(running)
    }
    await Promise.all(this.#underWay)
  }

  readonly #faults: Record<Fault, [weight: number, fault: () => Promise<void>][]> = {
    kill: [[30, () => this.#kill()]],
    freeze: [[15, () => this.#freeze()]],
    postgres: [[8, () => this.#restartPostgres()]],
    kafka: [[6, () => this.#disturbKafka()]],
    network: [
      [20, () => this.#note(this.#disturb(this.#victims.postgresProxy))],
      [20, () => this.#disturb(this.#pickOne(this.#victims.kafkaProxies))],
    ],
  }

  async #kill(): Promise<void> {
    this.counts.kills += 1
    this.#victims.crew.kill(this.#random.between(0, this.#victims.crew.size - 1))
  }

  async #freeze(): Promise<void> {
    this.counts.freezes += 1
    const { crew } = this.#victims
    const { pid, thaw } = crew.freeze(this.#random.between(0, crew.size - 1))
    // From less than a lease to three of them.
    await this.#note(delay(this.#random.between(500, 6_000)), pid)
    thaw()
  }

  /** Notes how long it keeps all instances, or one, from the database. */
  async #note(disturbing: Promise<void>, pid?: number): Promise<void> {
    const from = Date.now()
    await disturbing
    this.disturbances.push({ from, to: Date.now(), ...(pid !== undefined && { pid }) })
  }

  async #restartPostgres(): Promise<void> {
    this.counts.pgRestarts += 1
    const awayMs = this.#random.between(0, 1_500)
    const { postgres } = this.#victims
    const restart = async () => {
      await postgres.kill()
      await delay(awayMs)
      await postgres.start()
    }
    this.#servers = this.#servers.then(() => this.#note(restart()))
    await this.#servers
  }

  // One broker at a time, and the next only when all are in sync again: with two of three away there is no quorum.
  async #disturbKafka(): Promise<void> {
    const { nodes } = this.#victims.kafka
    const node = this.#pickOne(nodes)
    const restart = nodes.length === 1 || this.#random.chance(0.5)
    await (restart ? this.#restartKafka(node) : this.#freezeKafka(node))
  }

  async #restartKafka(node: KafkaNode): Promise<void> {
    this.counts.kafkaRestarts += 1
    const awayMs = this.#random.between(0, 4_000)
    this.#servers = this.#servers.then(async () => {
      await node.kill()
      await delay(awayMs)
      await node.start()
      await this.#victims.kafka.waitUntilInSync()
    })
    await this.#servers
  }

  async #freezeKafka(node: KafkaNode): Promise<void> {
    this.counts.kafkaFreezes += 1
    // From less than the session of a broker, whose leaders then stay, to three of them.
    const frozenMs = this.#random.between(500, 6_000)
    this.#servers = this.#servers.then(async () => {
      node.pause()
      await delay(frozenMs)
      node.resume()
      await this.#victims.kafka.waitUntilInSync()
    })
    await this.#servers
  }

  /** Draws only where there is a choice, so that a seed means the same as ever with one broker. */
  #pickOne<T>(choices: readonly T[]): T {
    return choices[choices.length === 1 ? 0 : this.#random.between(0, choices.length - 1)]!
  }

  async #disturb(proxy: TcpProxy): Promise<void> {
    this.counts.cuts += 1
    const kind = this.#random.pick([
      [3, 'cut'],
      [2, 'half-open'],
      [2, 'delay'],
    ] as const)
    const ms = this.#random.between(300, 3_500)
    if (kind === 'cut') proxy.cut()
    else if (kind === 'delay') {
      proxy.delay(this.#random.between(20, 600))
      await delay(ms)
      proxy.delay(0)
    } else {
      proxy.halfOpen()
      await delay(ms)
      await proxy.accept()
      // What was silent stays so until somebody notices: here the network does, after a while.
      await delay(this.#random.between(0, 4_000))
      proxy.cut()
    }
  }
}
