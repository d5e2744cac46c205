// How long a server answered nothing, by what a client sees, past all proxies. Without faults an event goes out twice only
// where a lease ended or a send was given up: when a worker, Postgres or Kafka stands still for a second, as on a machine
// with too much to do. The workers measure themselves.
import { setTimeout as delay } from 'node:timers/promises'
import { Kafka, logLevel } from 'kafkajs'
import postgres from 'postgres'

const EACH_MS = 50

export interface StallWatch {
  /** Returns the longest time between two answers of a server. */
  stop(): Promise<number>
}

export async function watchForStalls(url: string, brokers: string[]): Promise<StallWatch> {
  const client = postgres(url, { max: 1, fetch_types: false, backoff: () => 0.1 })
  const retry = { retries: 0 }
  const kafka = new Kafka({ brokers, logLevel: logLevel.NOTHING, requestTimeout: 5_000, retry })
  const admin = kafka.admin()
  await admin.connect()
  const watches = [watch(() => client`select 1`), watch(() => admin.describeCluster())]
  return {
    async stop() {
      const longest = await Promise.all(watches.map((one) => one.stop()))
      await Promise.all([client.end({ timeout: 1 }), admin.disconnect()])
      return Math.max(...longest)
    },
  }
}

function watch(ask: () => Promise<unknown>): StallWatch {
  const state = { goesOn: true }
  const longest = (async () => {
    let [answeredAt, longestMs] = [performance.now(), 0]
    const note = () => {
      const now = performance.now()
      longestMs = Math.max(longestMs, now - answeredAt)
      answeredAt = now
    }
    while (state.goesOn) {
      // A refusal is no answer: where faults were asked for, servers restart.
      await ask().then(note, () => {})
      await delay(EACH_MS)
    }
    note()
    return longestMs
  })()
  return {
    stop() {
      state.goesOn = false
      return longest
    },
  }
}
