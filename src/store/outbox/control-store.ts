// What operators see and control: the pauses that all instances obey, and a row for each instance that runs. One statement,
// the beat, renews that row and returns the pauses.
import type { Path } from '../../lifecycle.ts'

/** While it lasts, no instance sends to the topic; its events wait in the table. */
export interface Pause {
  /** null: everything. */
  readonly topic: string | null
  readonly since: Date
  readonly by: string | null
  readonly reason: string | null
}

/** A destination that an instance cannot reach: a topic, or with null the whole broker of a publisher. */
export interface OpenCircuit {
  readonly publisher: string
  readonly topic: string | null
  /** For how long, at the last beat. */
  readonly forMs: number
  readonly error: string
}

/** What an instance has done since it started, and what is out of its reach, at its last beat. */
export interface InstanceReport {
  /** Events that it holds: queued, under way, or not recorded yet. */
  readonly inFlight: number
  readonly circuits: readonly OpenCircuit[]
  readonly published: Readonly<Record<Path, number>>
  /** Failed attempts, outages included. */
  readonly failed: number
  readonly dead: number
  readonly duplicates: number
  /** From COMMIT to ack on the immediate path: how many events took up to each of LATENCY_BOUNDS, and how many longer. */
  readonly latency: readonly number[]
}

/** How long what instances did stays known, also of those that stopped. */
export const HISTORY_MINUTES = 180

/** What an instance did, minute by minute. */
export interface InstanceHistory {
  /** Minutes name a topic by its place here. */
  readonly topics: readonly string[]
  /** When the last of `minutes` began, counted back from the moment at which the row was written. */
  readonly lastBeganMsAgo: number
  /** One after the other, the oldest first, at most HISTORY_MINUTES. 0: nothing is known but that nothing happened. */
  readonly minutes: readonly (HistoryMinute | 0)[]
}

export interface HistoryMinute {
  /** Of each topic: its place, or -1 for all topics beyond the first few; then how many events the immediate path and the fallback sent, and failed attempts. */
  readonly sent?: readonly (readonly [
    topic: number,
    immediate: number,
    fallback: number,
    failed: number,
  ])[]
  /** From COMMIT to ack on the immediate path: a place in LATENCY_BOUNDS, how many events took up to that, the next place, and so on. */
  readonly took?: readonly number[]
  /** The table, where this process has looked at it in that minute. */
  readonly table?: readonly [pending: number, oldestMs: number, dead: number]
}

/** An instance that runs, or has been running, as far as its history is known. */
export interface PastInstance extends Pick<Instance, 'id' | 'workerId' | 'host' | 'startedAt'> {
  /** null: it has stopped. */
  readonly seenMsAgo: number | null
  readonly writtenAt: Date
  readonly history: InstanceHistory
}

/** A running instance, as its last beat described it. */
export interface Instance {
  /** A new id with each start(). */
  readonly id: string
  readonly workerId: string
  readonly host: string
  readonly pid: number
  /** The version of this library. */
  readonly version: string
  readonly startedAt: Date
  readonly seenAt: Date
  /** By the database's clock. An instance that runs beats every ten seconds. */
  readonly seenMsAgo: number
  /** What it publishes; `topics` is null for all topics, or all that no other publisher of it takes. */
  readonly publishers: readonly {
    readonly name: string
    readonly topics: readonly string[] | null
  }[]
  /** Whether it runs the immediate path. */
  readonly immediate: boolean
  /** Whether it runs the fallback. */
  readonly poller: boolean
  /** The settings that all instances on the table should agree on, and `cleanup`: whether it deletes old rows. */
  readonly settings: Readonly<Record<string, unknown>>
  readonly report: InstanceReport
}

/** An instance as it describes itself. */
export interface OwnInstance extends Omit<Instance, 'startedAt' | 'seenAt' | 'seenMsAgo'> {
  /** How long ago it started. */
  readonly upMs: number
}

export interface ControlStore {
  /** Returns false if it was paused already. */
  pause(
    topic: string | null,
    about: { readonly by: string | null; readonly reason: string | null },
  ): Promise<boolean>
  /** Returns false if it was not paused. */
  resume(topic: string | null): Promise<boolean>
  pauses(): Promise<Pause[]>
  /** The instances that were seen in the last hour, the oldest first. */
  instances(): Promise<Instance[]>
  /** Renews this instance's row, deletes those of instances that are long gone, and returns the pauses. `history` is null where the row has it. */
  beat(self: OwnInstance, history: InstanceHistory | null): Promise<Pause[]>
  /** From now on the instance is not listed, even if a beat of it comes late. Its history stays. */
  leave(id: string, history: InstanceHistory): Promise<void>
  /** What instances did in the last HISTORY_MINUTES, the last started first. */
  histories(): Promise<PastInstance[]>
}
