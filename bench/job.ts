// What a contender's process is asked to do, and what it returns. One process does one job for one contender, so that
// none inherits another one's memory, warm caches or connections.
import type { ContenderName } from './contender.ts'
import type { Scene } from './scenes.ts'
import type { Spread } from './spread.ts'

export interface Assignment {
  readonly contender: ContenderName
  readonly tuned: boolean
  readonly databaseUrl: string
  readonly brokers: readonly string[]
  readonly topic: string
  readonly job: Job
}

export type Job = Loads | LeaveBehind | Drain | Idle | Polls | Claims | Overhead

/** Loads that the process is told one after another, until it is told to end. It gets warm before the first. */
export interface Loads {
  readonly kind: 'loads'
}

/** Units of work, one after another in so many lines, or at a pace. */
export interface Load {
  /** About so long, by what was seen before: slow and fast contenders take the same time. */
  readonly seconds: number
  readonly concurrency: number
  /** Units begin at this pace, whatever became of those before; `concurrency` is not looked at then. */
  readonly perSecond?: number
  readonly eventsPerUnit: number
  readonly payloadBytes: number
  /** How many aggregates the events belong to. @default each unit has its own */
  readonly keys?: number
  /** If it is the first one of its process. @default WARM_UP */
  readonly warmUp?: WarmUp
}

/** A process is warm after this many units of work, or after this time. */
export interface WarmUp {
  readonly units: number
  readonly seconds: number
}

/** A paced load is too slow to warm a process: its warm-up has no pace, and at least so many units at once. */
export const WARM_UP_CONCURRENCY = 16

/**
 * Code is compiled by how often it has run, not by how long. The CPU time of an event of `dual-write` fell from 2,200 to
 * 675 µs by the 4,500th; ours was still falling there. A fixed time would leave a slow contender, or all of them on a
 * slow machine, half compiled.
 */
export const WARM_UP: WarmUp = { units: 6_000, seconds: 15 }

/** For a workload that no target is about. */
export const SHORT_WARM_UP: WarmUp = { units: 2_000, seconds: 5 }

/** For a process that is warm, and has not seen this kind of load. */
export const NEW_LOAD: WarmUp = { units: 1_000, seconds: 2 }

/** Units of the first portion, as nobody knows yet how long they take, and the fewest that are measured. */
export const FIRST_UNITS = 10
export const MIN_UNITS = 10

/** Fills the table as an outage does. */
export interface LeaveBehind {
  readonly kind: 'leave-behind'
  readonly rows: number
  readonly payloadBytes: number
}

/** Sends what is there until it is told to end. */
export interface Drain {
  readonly kind: 'drain'
  /** For a contender that has nothing but its memory. */
  readonly fromMemory?: Omit<LeaveBehind, 'kind'>
}

export interface Idle {
  readonly kind: 'idle'
  readonly seconds: number
}

/** Rounds of our fallback that find nothing to do. */
export interface Polls {
  readonly kind: 'polls'
  readonly rounds: number
}

/** Rounds of our fallback that each claim 100 events, with something in their way. */
export interface Claims {
  readonly kind: 'claims'
  readonly scene: Scene
  readonly claims: number
  /** The database with the empty table; null if that is the scene. */
  readonly emptyUrl: string | null
}

/** Units of three kinds by turns: without events, with an INSERT written by hand, with withOutbox(). */
export interface Overhead {
  readonly kind: 'overhead'
  readonly units: number
}

export interface Usage {
  readonly cpuSeconds: number
  readonly peakRssMb: number
}

export interface LoadResult extends Usage {
  /** By the process so far, with the warm-ups. */
  readonly emitted: number
  readonly committed: number
  readonly seconds: number
  readonly perSecond: number
  /** From commit to ack. */
  readonly latencyMs: Spread
  /** How long a unit of work took for whoever called it. */
  readonly unitMs: Spread
}

export interface PollsResult {
  readonly pollMs: number
}

export interface ClaimsResult {
  readonly claimMs: number
  /** The first one of the process. */
  readonly firstMs: number
  /** To claims in an empty table, taken by turns with these. */
  readonly ratio: number
}

export interface OverheadResult {
  readonly noneMs: number
  readonly handWrittenMs: number
  readonly withOutboxMs: number
}

export type JobResult = LoadResult | OverheadResult | PollsResult | ClaimsResult | Usage

export type FromProcess =
  | { readonly kind: 'ready' }
  | { readonly kind: 'measured'; readonly result: LoadResult }
  | { readonly kind: 'progress'; readonly acked: number }
  | { readonly kind: 'done'; readonly result: JobResult }
  | { readonly kind: 'failed'; readonly reason: string }

export type ToProcess = 'go' | 'finish' | Load
