// What the path needs from a database; postgres.ts implements it for Postgres. Every stored time, and every comparison
// of stored times, uses the database's clock (rule 8).
import type { OutboxEvent, PreparedEvent } from '../../event/event.ts'
import type { TableName } from '../table-name.ts'

/** The options that the statements need. */
export interface StoreRules {
  readonly table: TableName
  /** Whether a dead letter holds back the later events of its lane. */
  readonly deadLettersHold: boolean
  /** Whether save() first locks the lanes of its events, until COMMIT. */
  readonly lockKeys: boolean
  /** Whether a row is kept once it is published. */
  readonly keepPublished: boolean
  /** The topic for a copy of each dead letter. */
  readonly deadLetterTopic: string | null
  /** When a background statement counts as failed, because its connection may be dead. */
  readonly statementTimeoutMs: number
}

/** Which process holds a row, and for how long. */
export interface Lease {
  readonly token: string
  readonly workerId: string
  /** 0: the row belongs to the fallback at once. */
  readonly ms: number
}

export interface SavedEvent {
  readonly event: OutboxEvent
  /**
   * What the event has to follow: the seqs of all earlier events of its lane that were committed and pending when it
   * was saved, whichever process holds them, plus a dead letter if dead letters hold their lane. 'unknown' if the save
   * could not tell (above read committed, or too many events) or did not ask (the event was saved without a lease).
   */
  readonly follows: readonly number[] | 'unknown'
}

/** One row under one lease. A statement that names a lease changes the row only while that lease holds. */
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
  /** The id and the lane of the copy for the dead-letter topic, if there is to be one. */
  readonly copyId: string | null
  readonly copyLane: number | null
  /** An earlier statement failed, and may have recorded this failure all the same. */
  readonly isRepeated?: boolean
}

export interface ClaimRequest {
  readonly lease: Lease
  readonly limit: number
  /** Topics to leave out: their circuit is open, or another publisher takes them. */
  readonly exceptTopics: readonly string[]
  /** If given, every other topic belongs to another publisher. */
  readonly onlyTopics?: readonly string[] | null
}

/** An event that the outbox gave up on, with the reason. */
export interface DeadLetter extends OutboxEvent {
  readonly error: string
  readonly diedAt: Date
}

/** Selects the dead letters that match every given field. */
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

/** The result for one page; `lastSeq` is null when the page was empty. */
export interface DeadLettersChanged {
  readonly count: number
  readonly lastSeq: number | null
}

export interface PurgeRequest {
  readonly status: 'published' | 'dead_letter'
  readonly olderThanMs: number
  readonly limit: number
  /** Where the previous batch ended; null for the first. */
  readonly after: string | null
}

export interface Purged {
  readonly deleted: number
  /** The last row of this batch; null when the round is over, or when another instance runs it. */
  readonly last: string | null
}

/** Exact as far as counting is cheap; beyond that, an estimate from Postgres's statistics. */
export interface Count {
  readonly count: number
  readonly exact: boolean
}

export interface TableStats {
  readonly pending: Count
  readonly dead: Count
  readonly published: Count
  // These five cover the ten thousand pending events that are due first.
  /** Neither leased nor waiting for a retry: the fallback could take these now, if order permits. */
  readonly due: number
  /** Events with failed attempts. */
  readonly retrying: number
  /** Events that wait behind one of their lane that has failed attempts. */
  readonly held: number
  /** The highest number of attempts among these events. */
  readonly mostAttempts: number
  /** How long ago the oldest of these events was saved; null when none is pending. */
  readonly lagMs: number | null
  /** From save to record, by event type, over the most recently saved events that are still in the table. */
  readonly latency: Readonly<Record<string, Latency>>
}

export interface Latency {
  readonly events: number
  readonly medianMs: number
  readonly p95Ms: number
  readonly maxMs: number
}

export interface Store<TTx> {
  /** Runs in the caller's transaction, as the last statement before COMMIT. */
  save(tx: TTx, events: readonly PreparedEvent[], lease: Lease): Promise<SavedEvent[]>
  /** Runs in a transaction that the application began. Saves without a lease, and returns the transaction's id. */
  saveIn(tx: TTx, events: readonly PreparedEvent[], workerId: string): Promise<string>
  /** Which of these transactions have ended, and whether they committed. */
  endedTransactions(ids: readonly string[]): Promise<ReadonlyMap<string, boolean>>
  /** Leases events that are committed and that no process holds. The others are left out. */
  lease(events: readonly PreparedEvent[], lease: Lease): Promise<SavedEvent[]>
  /** Takes due rows that no process holds, oldest first, in its own short transaction. */
  claim(request: ClaimRequest): Promise<OutboxEvent[]>
  /**
   * Extends leases. Returns the ids of the rows that were still held, each with the token that holds it: one process
   * may know a row under both an old and a new token.
   */
  renew(leases: readonly LeaseRef[], ms: number): Promise<ReadonlyMap<string, string>>
  /**
   * Records acks. An ack is a fact: published wins over every other state and stays. Returns the ids that were not
   * recorded as published before.
   */
  recordPublished(ids: readonly string[]): Promise<Set<string>>
  /**
   * Records failures, but only where the lease still holds (fenced). Returns those ids, each with its token, and of
   * repeated ones those that an earlier statement has recorded.
   */
  recordFailed(failures: readonly FailureRecord[]): Promise<ReadonlyMap<string, string>>
  /** Deletes one batch of old rows. Only one instance deletes at a time; the others delete nothing. */
  purge(request: PurgeRequest): Promise<Purged>
  listDeadLetters(filter: DeadLetterFilter, page: DeadLetterPage): Promise<DeadLetter[]>
  /** Makes dead letters pending again, with no attempts used. */
  retryDeadLetters(filter: DeadLetterFilter, page: DeadLetterPage): Promise<DeadLettersChanged>
  discardDeadLetters(filter: DeadLetterFilter, page: DeadLetterPage): Promise<DeadLettersChanged>
  /** How many dead letters there are, by event type, counted up to the limit. */
  countDeadLetters(limit: number): Promise<Record<string, number>>
  /** How many events have other topics, by topic, among the events due first, up to the limit. */
  countUnrouted(routed: readonly string[], limit: number): Promise<Record<string, number>>
  /** How many events are pending, counted up to the limit. */
  countPending(limit: number): Promise<number>
  stats(): Promise<TableStats>
  /** Throws TABLE_MISSING if the table, or the function that the save calls, does not work. */
  verify(): Promise<void>
  /** Creates or updates the table. Safe to call from many processes at once. */
  migrate(): Promise<void>
}
