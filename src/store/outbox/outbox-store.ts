// What the path needs from a database. store/postgres.ts is the implementation for Postgres; every
// stored time, and every comparison of stored times, is the database's.
import type { OutboxEvent, PreparedEvent } from '../events.ts'
import type { TableName } from './table-name.ts'

/** What the statements need to know of the options. */
export interface StoreRules {
  readonly table: TableName
  /** Whether a claim takes, per aggregate, only a run from its oldest unpublished event. */
  readonly inOrder: boolean
  /** Whether a dead letter keeps the later events of its aggregate back. */
  readonly deadLettersHold: boolean
  /** Whether save() first locks the aggregates of its events, until COMMIT. */
  readonly lockKeys: boolean
  /** Whether a row is kept once it is published. */
  readonly keepPublished: boolean
  /** Where a copy of each dead letter goes. */
  readonly deadLetterTopic: string | null
  /** After which a statement of the background counts as failed: its connection may be dead. */
  readonly statementTimeoutMs: number
}

/** Who holds a row, and for how long. */
export interface Lease {
  readonly token: string
  readonly workerId: string
  /** 0: the row belongs to the fallback at once. */
  readonly ms: number
}

export interface SavedEvent extends OutboxEvent {
  /**
   * The latest earlier event of the same aggregate that is still pending; Infinity if any of them is in
   * other hands than those that saved this one; null if there is none.
   */
  readonly after: number | null
}

/** One row under one lease; a statement that names a lease touches the row only while it holds. */
export interface LeaseRef {
  readonly id: string
  readonly token: string
}

export interface FailureRecord extends LeaseRef {
  readonly status: 'pending' | 'dead_letter'
  /** Whether this failure counts as an attempt. */
  readonly counts: boolean
  readonly delayMs: number
  /** null: the row was not tried, so its last error stays. */
  readonly error: string | null
  /** The id of the copy that goes to the dead-letter topic, if there is to be one. */
  readonly copyId: string | null
}

export interface ClaimRequest {
  readonly lease: Lease
  readonly limit: number
  /** Topics to leave alone: their circuit is open, or another publisher's claims take them. */
  readonly exceptTopics: readonly string[]
  /** If given, every other topic is another publisher's. */
  readonly onlyTopics?: readonly string[] | null
}

/** An event that was given up, as a person looks at it. */
export interface DeadLetter extends OutboxEvent {
  readonly error: string
  readonly diedAt: Date
}

/** Which dead letters are meant: those that match everything given. */
export interface DeadLetterFilter {
  id?: string | readonly string[]
  type?: string
  aggregateType?: string
  aggregateId?: string
  /** Died at this time or later. */
  diedSince?: Date
  /** Died before this time. */
  diedBefore?: Date
}

export interface DeadLetterPage {
  readonly limit: number
  /** Only those saved after this one. */
  readonly afterSeq: number
}

/** What became of one page of them; `lastSeq` is null when there was none. */
export interface DeadLettersChanged {
  readonly count: number
  readonly lastSeq: number | null
}

export interface PurgeRequest {
  readonly status: 'published' | 'dead_letter'
  readonly olderThanMs: number
  readonly limit: number
  /** Where the last batch ended; null for the first. */
  readonly after: string | null
}

export interface Purged {
  readonly deleted: number
  /** The last row of this batch; null when the round is over, or is another instance's. */
  readonly last: string | null
}

/** A count is exact as far as counting is cheap, and from there on what Postgres' own statistics say. */
export interface Count {
  readonly count: number
  readonly exact: boolean
}

export interface TableStats {
  readonly pending: Count
  readonly dead: Count
  readonly published: Count
  // These four are about the ten thousand pending events that are due first.
  /** Held by nobody: what the fallback could take now, order permitting. */
  readonly due: number
  /** With failed attempts behind them. */
  readonly retrying: number
  /** The most attempts that one of them has had. */
  readonly mostAttempts: number
  /** How long ago the oldest of them was saved; null when none is pending. */
  readonly lagMs: number | null
  /** By event type, over the events saved last and still in the table: from save to record. */
  readonly latency: Readonly<Record<string, Latency>>
}

export interface Latency {
  readonly events: number
  readonly medianMs: number
  readonly p95Ms: number
  readonly maxMs: number
}

export interface Store<TTx> {
  /** In the caller's transaction, as the last thing before COMMIT. */
  save(tx: TTx, events: readonly PreparedEvent[], lease: Lease): Promise<SavedEvent[]>
  /** Takes rows whose lease ran out, oldest first. Its own short transaction. */
  claim(request: ClaimRequest): Promise<OutboxEvent[]>
  /**
   * Prolongs leases; answers the ids of the rows that were still held, each with the token that holds it: one
   * process may know a row under an old token and a new one.
   */
  renew(leases: readonly LeaseRef[], ms: number): Promise<ReadonlyMap<string, string>>
  /**
   * An ack is a fact: published wins over every other state and stays. Answers the ids that were not
   * published before.
   */
  settlePublished(ids: readonly string[]): Promise<Set<string>>
  /** Fenced: recorded only where the lease still holds; answers those ids, each with its token. */
  settleFailed(failures: readonly FailureRecord[]): Promise<ReadonlyMap<string, string>>
  /** Deletes one batch of old rows. One instance at a time: the others get nothing. */
  purge(request: PurgeRequest): Promise<Purged>
  listDeadLetters(filter: DeadLetterFilter, page: DeadLetterPage): Promise<DeadLetter[]>
  /** Makes them pending again, as they were when they were new. */
  retryDeadLetters(filter: DeadLetterFilter, page: DeadLetterPage): Promise<DeadLettersChanged>
  discardDeadLetters(filter: DeadLetterFilter, page: DeadLetterPage): Promise<DeadLettersChanged>
  /** How many dead letters there are, by event type, counted no further than the limit. */
  countDeadLetters(limit: number): Promise<Record<string, number>>
  /** How many events of other topics are due, by topic, among as many as the limit that are due first. */
  countUnrouted(routed: readonly string[], limit: number): Promise<Record<string, number>>
  /** How many events are pending, counted no further than the limit. */
  countPending(limit: number): Promise<number>
  stats(): Promise<TableStats>
  /** Throws TABLE_MISSING unless the table is there. */
  verify(): Promise<void>
  /** Brings the table up to date. Safe to call from many processes at once. */
  migrate(): Promise<void>
}
