// What the path needs from a database. store/postgres.ts is the implementation for Postgres; every
// stored time, and every comparison of stored times, is the database's.
import type { OutboxEvent, PreparedEvent } from '../events.ts'

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
}

export interface ClaimRequest {
  readonly lease: Lease
  readonly limit: number
  /** Topics to leave alone for now: their circuit is open. */
  readonly exceptTopics: readonly string[]
  /** Take, per aggregate, only a run from its oldest unpublished event. */
  readonly inOrder: boolean
}

export interface Store<TTx> {
  /** In the caller's transaction, as its last statement. */
  save(tx: TTx, events: readonly PreparedEvent[], lease: Lease): Promise<SavedEvent[]>
  /** Takes rows whose lease ran out, oldest first. Its own short transaction. */
  claim(request: ClaimRequest): Promise<OutboxEvent[]>
  /** Prolongs leases; answers the ids that were still held. */
  renew(leases: readonly LeaseRef[], ms: number): Promise<Set<string>>
  /** An ack is a fact: published wins over every other state and stays. */
  settlePublished(ids: readonly string[]): Promise<void>
  /** Fenced: recorded only where the lease still holds; answers those ids. */
  settleFailed(failures: readonly FailureRecord[]): Promise<Set<string>>
  /** Throws TABLE_MISSING unless the table is there. */
  verify(): Promise<void>
  /** Brings the table up to date. Safe to call from many processes at once. */
  migrate(): Promise<void>
}
