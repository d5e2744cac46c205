// What the path needs from a database; postgres.ts implements it for Postgres. Every stored time, and every comparison
// of stored times, uses the database's clock (rule 8).
import type { EventStatus, OutboxEvent, PreparedEvent } from '../../event/event.ts'
import type { MigrateOptions } from '../migrate.ts'
import type { TableName } from '../table-name.ts'
import type { CdcLook } from './cdc/look.ts'
import type { BrowseStore, EventFilter } from './browse-store.ts'
import type { ControlStore } from './control-store.ts'
import type { DeadLetterFilter, FailurePage, FailureStore } from './failure-store.ts'
import type { RedactedPage, Redaction } from './redact.ts'
import type { ReroutePlace, Rerouted } from './reroute.ts'

/** The options that the statements need. */
export interface StoreRules {
  readonly table: TableName
  /** Whether a dead letter holds back the later events of its lane. */
  readonly deadLettersHold: boolean
  /** Whether rows are saved for a connector that reads them from the log of the database (relay: 'cdc'). */
  readonly savesForCdc: boolean
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
   * What the event has to follow: the seqs of all earlier events of its lane that were committed and unfinished when it
   * was saved, whichever process holds them, plus a dead letter if dead letters hold their lane. 'unknown' if the save
   * could not tell (above read committed, or too many events) or did not ask (the event was saved without a lease).
   */
  readonly follows: readonly number[] | 'unknown'
  /** In how many milliseconds it is due, if it was scheduled. Then it was saved without a lease. */
  readonly dueInMs?: number
}

/** The result of a save into a transaction that the application began. */
export interface SavedIn {
  /** The id of the transaction. */
  readonly transaction: string
  /** In how many milliseconds the first of its scheduled events is due; null: there are none. */
  readonly dueInMs: number | null
}

/** One row under one lease. A statement that names a lease changes the row only while that lease holds. */
export interface LeaseRef {
  readonly id: string
  readonly token: string
}

export interface FailureRecord extends LeaseRef {
  /** null: the row was given back, and stays what it was. */
  readonly status: 'failed' | 'dead_letter' | null
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

/** What a look of the fallback finds. */
export interface Due {
  /** The topics that have something due, the one with the oldest event first. */
  readonly topics: readonly string[]
  /** In how many milliseconds the next scheduled event is due; null: none is scheduled. */
  readonly nextInMs: number | null
}

export interface ClaimRequest {
  readonly lease: Lease
  readonly limit: number
  /** How many events it may look at. @default the limit */
  readonly read?: number
  readonly from: ClaimSource
}

/** Where a claim looks: at what is due for these topics, or at the heads of these lanes. */
export type ClaimSource =
  | { readonly topics: readonly string[] }
  | ({ readonly lanes: readonly number[] } & TopicLimits)

export interface TopicLimits {
  /** If given, every other topic belongs to another publisher. */
  readonly onlyTopics: readonly string[] | null
  /** Topics to leave out: their circuit is open, or another publisher takes them. */
  readonly exceptTopics: readonly string[]
}

export interface Claimed {
  /** In the order in which they were saved. */
  readonly events: readonly OutboxEvent[]
  /** Whether the claim looked at as many events as it may, so that there may be more. */
  readonly isFull: boolean
  /** Lanes in which events wait for others that are under way, here or in another process. */
  readonly waitingLanes: readonly number[]
}

/** An event as the table has it now. */
export interface Standing {
  readonly status: EventStatus
  readonly attempts: number
  readonly error: string | null
  /** Whether a process holds it. */
  readonly isLeased: boolean
  /** Whether it waits for its next attempt. */
  readonly rests: boolean
  /** Whether it waits behind a dead letter of its lane. */
  readonly isHeld: boolean
  /** The first unfinished event of its lane, if that is another one. */
  readonly ahead: (Pick<Standing, 'isLeased' | 'rests'> & { readonly topic: string }) | null
}

/** An event that the outbox gave up on, with the reason. */
export interface DeadLetter extends OutboxEvent {
  readonly error: string
  readonly diedAt: Date
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

/** The partitions of a table that has them, as the upkeep sees them. */
export interface PartitionsFound {
  /** Whether this role may make and drop partitions. */
  readonly isOwner: boolean
  /** The days from today on, such as `2026-01-31`, that have no partition yet. */
  readonly missing: readonly string[]
  /** The partitions for ids that are all old enough, oldest first. What is in them may be younger, or unfinished. */
  readonly old: readonly Partition[]
}

export interface Partition {
  readonly oid: number
  readonly name: string
  /** Its ids: from the first one up to, and without, the second. */
  readonly lower: string
  readonly upper: string
}

/** A part of a partition, from its newest row on. */
export interface PartitionPart {
  readonly rows: number
  /** Whether all of them are published, and old enough. */
  readonly isOld: boolean
  /** Where the next part begins; null when there is none. */
  readonly before: string | null
}

/** Only one instance changes partitions at a time; for the others, null means that it is not their turn. */
export interface PartitionStore {
  /** null: the table has no partitions. */
  find(olderThanMs: number): Promise<PartitionsFound | null>
  /** Makes the partition of a day. Returns false if there is one, or if the day has rows in the default partition. */
  make(day: string): Promise<boolean | null>
  /** Looks at the next rows of a partition; `before` is null for its newest ones. */
  look(
    partition: Partition,
    olderThanMs: number,
    before: string | null,
  ): Promise<PartitionPart | null>
  /** The same without taking the turn of the purge, for what only counts. */
  peek(partition: Partition, olderThanMs: number, before: string | null): Promise<PartitionPart>
  /** Drops a partition. Returns false if it is gone, or if a row in it is not published. */
  drop(partition: Partition): Promise<boolean | null>
}

/** Exact as far as counting is cheap. Beyond that, there are at least this many. */
export interface Count {
  readonly count: number
  readonly exact: boolean
}

export interface TableStats {
  /** What is still to be sent, as far as it is due: pending, failed, or scheduled until now. Counted up to 100,000, like dead letters. */
  readonly pending: Count
  /** Scheduled for later. Counted up to 10,000. */
  readonly scheduled: Count
  readonly dead: Count
  /** Of the newest 10,000 rows, unless there are no others. */
  readonly published: Count
  // These five cover ten thousand of them: of each topic, those that are due first.
  /** Neither leased nor waiting for a retry: the fallback could take these now, if order and pauses permit. */
  readonly due: number
  /** Events with failed attempts. */
  readonly retrying: number
  /** Events that wait behind one of their lane that has failed attempts. */
  readonly held: number
  /** The highest number of attempts among these events. */
  readonly mostAttempts: number
  /** How long ago the oldest of these events was saved, or was due if it was scheduled; null when none is pending. */
  readonly lagMs: number | null
  /** The topics with unfinished events. Together they are counted up to ten thousand, each up to its share of that. */
  readonly topics: Readonly<Record<string, TopicBacklog>>
  /**
   * From save to record, by event type, over the most recently saved events that are still in the table. Of scheduled ones
   * from the time at which they were due.
   */
  readonly latency: Readonly<Record<string, Latency>>
}

export interface TopicBacklog {
  readonly pending: Count
  /** How long ago the oldest of these events was saved. */
  readonly lagMs: number
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
  /** Runs in a transaction that the application began. Saves without a lease. */
  saveIn(tx: TTx, events: readonly PreparedEvent[], workerId: string): Promise<SavedIn>
  /**
   * Deletes a scheduled event that no process has taken, in the transaction or in one of its own. Returns false if there is
   * none: it has gone out or is about to.
   */
  cancel(id: string, tx?: TTx): Promise<boolean>
  /** The same, in a transaction that the application began. Throws if it is not open. */
  cancelIn(tx: TTx, id: string): Promise<boolean>
  /** Which of these transactions have ended, and whether they committed. */
  endedTransactions(ids: readonly string[]): Promise<ReadonlyMap<string, boolean>>
  /** Leases events that are committed and that no process holds. The others are left out. */
  lease(events: readonly PreparedEvent[], lease: Lease): Promise<SavedEvent[]>
  /** Makes scheduled events due whose time has come, and looks which topics have something due. */
  dueTopics(): Promise<Due>
  /**
   * Takes rows that no process holds, in its own short transaction. What is due and may not go yet is put off, so that
   * the next claim does not look at it again.
   */
  claim(request: ClaimRequest): Promise<Claimed>
  /** Makes the first event of each lane that was put off due again. */
  wake(lanes: readonly number[]): Promise<void>
  /**
   * Extends leases. Returns the ids of the rows that were still held, each with the token that holds it: one process
   * may know a row under both an old and a new token.
   */
  renew(leases: readonly LeaseRef[], ms: number): Promise<ReadonlyMap<string, string>>
  /** The state of these events. Those that are no longer in the table are left out. */
  standing(ids: readonly string[]): Promise<ReadonlyMap<string, Standing>>
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
  readonly partitions: PartitionStore
  readonly control: ControlStore
  readonly failures: FailureStore
  readonly browse: BrowseStore
  /** Moves one page of unfinished events that no process holds from one topic to another, due now. */
  reroute(
    topics: { readonly from: string; readonly to: string },
    page: { readonly limit: number; readonly after: ReroutePlace | null },
  ): Promise<Rerouted>
  /** Replaces the payloads of one page of events. `after` is where the page before ended. */
  redact(filter: EventFilter, redaction: Redaction, after: string | null): Promise<RedactedPage>
  listDeadLetters(filter: DeadLetterFilter, page: FailurePage): Promise<DeadLetter[]>
  /** How many dead letters there are, by event type, counted up to the limit. */
  countDeadLetters(limit: number): Promise<Record<string, number>>
  /** How many due events have other topics, by topic, each counted up to the limit. */
  countUnrouted(routed: readonly string[], limit: number): Promise<Record<string, number>>
  /** How many events are unfinished, counted up to the limit. Without those that are scheduled for later. */
  countPending(limit: number): Promise<number>
  stats(): Promise<TableStats>
  /** Whether the server takes writes; a standby does not. */
  takesWrites(): Promise<boolean>
  /**
   * Throws TABLE_MISSING if the tables, or the function that the save calls, do not work, and SCHEMA_NEWER if they need a
   * newer version. Returns the migrations of a newer version that this one can work with.
   */
  verify(): Promise<readonly string[]>
  /** What a connector would find, for relay: 'cdc'. */
  readonly cdc: CdcLook
  /** Creates or updates the tables. Safe to call from many processes at once. */
  migrate(options?: MigrateOptions): Promise<void>
}
