// Failures that will be tried again, and dead letters: how a person finds, retries and discards both kinds.

/** `failed` rests until its next attempt; `dead_letter` waits for a person. */
export type FailureStatus = 'failed' | 'dead_letter'

/** What every selection of failures can name. */
export interface FailureFields {
  id?: string | readonly string[]
  type?: string
  topic?: string
  aggregateType?: string
  aggregateId?: string
  /** The error of a group, as groups() returns it, or an error as it was recorded. */
  error?: string
}

/** Selects the failures that match every given field. */
export interface FailureFilter extends FailureFields {
  /** @default both */
  status?: FailureStatus
  /** Last tried at this time or later. */
  failedSince?: Date
  /** Last tried before this time. */
  failedBefore?: Date
  /** Emitted at this time or later, by the clock of the application: the time in the id. */
  savedSince?: Date
  /** Emitted before this time. */
  savedBefore?: Date
}

/** Failures of one kind: each kind has an index of its own. */
export interface FailuresOfKind extends FailureFilter {
  status: FailureStatus
}

/** Selects the dead letters that match every given field. */
export interface DeadLetterFilter extends FailureFields {
  /** Died at this time or later. */
  diedSince?: Date
  /** Died before this time. */
  diedBefore?: Date
}

export function ofDeadLetters({
  diedSince,
  diedBefore,
  ...fields
}: DeadLetterFilter): FailuresOfKind {
  return {
    ...fields,
    status: 'dead_letter',
    ...(diedSince && { failedSince: diedSince }),
    ...(diedBefore && { failedBefore: diedBefore }),
  }
}

/** Failures of one kind, type and topic whose errors differ in numbers, ids, quoted texts and the like alone. */
export interface FailureGroup {
  readonly status: FailureStatus
  readonly type: string
  readonly topic: string
  /** The error, with placeholders for what differs: `order <number> has no address`. */
  readonly error: string
  readonly count: number
  /** False: there are at least this many, as only the newest 10,000 failures of each kind are grouped. */
  readonly exact: boolean
  /** When the first and the last of them was tried last. */
  readonly firstAt: Date
  readonly lastAt: Date
  /** The newest of them, with its error as it was recorded. */
  readonly example: { readonly id: string; readonly error: string }
}

export interface FailurePage {
  readonly limit: number
  /** Only those saved after this one. */
  readonly afterSeq: number
}

/** The result for one page: how many were changed, or counted. The next one begins after `lastSeq`, null at the end. */
export interface FailuresChanged {
  readonly count: number
  readonly lastSeq: number | null
}

export interface FailureStore {
  /** The largest groups. */
  groups(limit: number): Promise<FailureGroup[]>
  /** How many of one page match. Here, `limit` is how many are looked at, whether they match or not. */
  count(filter: FailuresOfKind, page: FailurePage): Promise<FailuresChanged>
  /**
   * Makes dead letters pending again, with no attempts used, and resting events due now, with the attempts that they
   * have. An event that a process holds is being tried, and is left alone.
   */
  retry(filter: FailuresOfKind, page: FailurePage): Promise<FailuresChanged>
  /** Deletes failures, but no event that a process holds. */
  discard(filter: FailuresOfKind, page: FailurePage): Promise<FailuresChanged>
}
