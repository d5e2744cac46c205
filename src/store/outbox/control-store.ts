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
  /** Renews this instance's row, deletes those of instances unseen for an hour, and returns the pauses. */
  beat(self: OwnInstance): Promise<Pause[]>
  /** Deletes the instance's row. */
  leave(id: string): Promise<void>
}
