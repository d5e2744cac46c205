// The time at which statements start reading each topic. A published event leaves a dead entry in the index until vacuum
// removes it, and vacuum removes nothing that an old transaction might still see. A claim that read from the beginning
// would read all of these: 600,000 took 0.4 s. So each look at the table notes for each topic when its oldest unfinished
// event is due, and the next one starts there.
//
// That is safe as long as nothing unfinished can appear before that time. An event appears when its transaction commits,
// with a time that this transaction read from the clock. A transaction that got its id after a look has read the clock
// after it too. So the time is that of a look some seconds ago, the mark. Transactions that had an id at the mark and are
// still running are remembered. When one of them ends, the next look starts where looks started before they passed it.
//
// Which transactions had an id at the mark? A snapshot does not show it, because it lists running transactions only up to
// the newest one that has ended. So the look that becomes a mark takes an id itself. All earlier ones are lower, and as
// that look ends at once, later snapshots list those that are still running.
//
// Between two looks, a claim begins where the one before it ended. What it leaves out that way, the next look finds.
//
// The index of scheduled events has dead entries too: of those that became due, and of those that were cancelled. It is read
// from a time of the same kind. A scheduled event is due no earlier than the clock at its save.
//
// All of this is in memory. A process that starts looks at everything, and again every ten minutes: the clock of the
// database may have been set back. It does so too when another server responds, or the same after a restart: an
// asynchronous standby that was promoted may not know of a lease or a failure, so an event is due again as of then.

/** How long ago that look is, at least. Few transactions are running for longer. */
const SECONDS_AGO_MS = 2_000

/**
 * Between reading the clock and getting an id, a statement of ours takes microseconds. It may take longer on a partitioned
 * table while a person rebuilds the partition of that day; such an event is found when the process begins anew.
 */
const SLACK_MS = 1_000

/** The clock of the database may have been set back unnoticed. */
const AT_MOST_MS = 600_000

/** Times of the database have microseconds, and are rounded on their way. */
const ROUNDING_MS = 1

/** A topic without unfinished events is forgotten when more than this many are known. */
const MOST_TOPICS = 1_000

const EVERYTHING = Number.NEGATIVE_INFINITY

/** What one look found. Times are the database's, in ms. */
export interface Look {
  readonly now: number
  /** When the server started, which distinguishes it from others. */
  readonly serverSince: number
  /** Running transactions, of those that are older than some transaction that has ended. */
  readonly running: ReadonlySet<bigint>
  /** The id that the look took, if it is to be a mark. */
  readonly ownId: bigint | null
  /** When the first unfinished event of each topic is due; null: there is none. */
  readonly firstByTopic: ReadonlyMap<string, number | null>
  /** When the first scheduled event is due; null: there is none. */
  readonly firstScheduled: number | null
}

export class Horizon {
  readonly #since = new Map<string, number>()
  #scheduledSince = EVERYTHING
  #begunAt = EVERYTHING
  #lastNow = EVERYTHING
  #serverSince: number | null = null
  /** The look that will be some seconds ago. */
  #mark: { readonly now: number; readonly ownId: bigint } | null = null
  #bound = EVERYTHING
  /** Transactions that have been running for longer, each with the bound before it was left behind. */
  readonly #leftBehind = new Map<bigint, number>()
  readonly #claimedUpTo = new Map<string, number>()
  #looks = 0

  /** A look becomes a mark at this time, if a transaction with a higher id than this has ended. */
  get nextMark(): { readonly at: number; readonly beyond: bigint } {
    const mark = this.#mark
    return mark
      ? { at: mark.now + SECONDS_AGO_MS, beyond: mark.ownId }
      : { at: EVERYTHING, beyond: -1n }
  }

  /** Where a look starts, for each topic that is known. */
  get since(): ReadonlyMap<string, number> {
    return this.#since
  }

  /** Where scheduled events are read from. */
  get scheduledSince(): number {
    return this.#scheduledSince
  }

  /** Where a claim starts. */
  claimsFrom(topic: string): number {
    return this.#claimedUpTo.get(topic) ?? this.#since.get(topic) ?? EVERYTHING
  }

  /** How many looks have ended. */
  get looks(): number {
    return this.#looks
  }

  /**
   * A claim has read all that was due up to this time. If a look has ended since the claim began, that look may have found
   * something below, so the next claim begins where the look did.
   */
  claimedUpTo(topic: string, dueAt: number, looksBefore: number): void {
    if (looksBefore === this.#looks) this.#claimedUpTo.set(topic, dueAt - ROUNDING_MS)
  }

  /** A look has ended and found these topics, whether or not the horizon learns more from it. */
  looked(topics: Iterable<string>): void {
    this.#looks += 1
    this.#claimedUpTo.clear()
    for (const topic of topics) if (!this.#since.has(topic)) this.#since.set(topic, EVERYTHING)
  }

  /** Returns whether to look again, because this look may have missed something. */
  learn(look: Look): boolean {
    const { now, serverSince, firstByTopic, firstScheduled } = look
    const isOtherServer = serverSince !== this.#serverSince
    if (isOtherServer || now < this.#lastNow || now > this.#begunAt + AT_MOST_MS) {
      this.#beginAnew(now)
    }
    this.#serverSince = serverSince
    this.#lastNow = now
    const back = this.#goBack(look)
    this.#advance(look)
    const from = Math.min(this.#bound, back)
    for (const [topic, first] of firstByTopic) {
      if (first === null && this.#since.size >= MOST_TOPICS) this.#since.delete(topic)
      else this.#since.set(topic, Math.min((first ?? Infinity) - ROUNDING_MS, from))
    }
    this.#scheduledSince = Math.min((firstScheduled ?? Infinity) - ROUNDING_MS, from)
    return back < Infinity
  }

  #advance({ now, ownId, running }: Look): void {
    if (ownId === null) return
    const mark = this.#mark
    this.#mark = { now, ownId }
    if (!mark) return
    for (const id of running) {
      if (id < mark.ownId && !this.#leftBehind.has(id)) this.#leftBehind.set(id, this.#bound)
    }
    this.#bound = mark.now - SLACK_MS
  }

  /** Where looks started before they passed transactions that have ended now. This look may have missed what those saved. */
  #goBack({ running }: Look): number {
    const ended = [...this.#leftBehind].filter(([id]) => !running.has(id))
    for (const [id] of ended) this.#leftBehind.delete(id)
    return Math.min(Infinity, ...ended.map(([, bound]) => bound))
  }

  #beginAnew(now: number): void {
    this.#begunAt = now
    this.#mark = null
    this.#bound = EVERYTHING
    this.#leftBehind.clear()
    this.#scheduledSince = EVERYTHING
    for (const topic of this.#since.keys()) this.#since.set(topic, EVERYTHING)
  }
}
