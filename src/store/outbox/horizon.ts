// From when on claims look at each topic. An event that was published leaves a dead entry in the index until vacuum removes
// it, and nothing is removed that some old transaction might still see. A claim that began at the beginning would read all
// of these: a million took 0.5 s. So each look at the table notes for each topic when its oldest unfinished event is due,
// and the next one begins there.
//
// That is safe as long as nothing unfinished can appear before that time. An event appears when its transaction commits,
// with a time that this transaction read from the clock. Whatever got its id after a look has read the clock after it too.
// So a look begins no later than the one before it, and whatever was running then and is still running is remembered: when
// it ends, looks begin once more where they began before they left it behind.
//
// All of this is in memory. A process that starts looks at everything, and again every ten minutes: the clock of the
// database may have been set back.

/** Between reading the clock and getting an id, a statement of ours takes microseconds. */
const SLACK_MS = 10_000
const AT_MOST_MS = 600_000

/** A topic without unfinished events is forgotten when more than this many are known. */
const MOST_TOPICS = 1_000

const EVERYTHING = Number.NEGATIVE_INFINITY

/** What one look found. Times are the database's, in ms. */
export interface Look {
  readonly now: number
  /** The transactions that were running. */
  readonly running: ReadonlySet<bigint>
  /** Transactions from this id on had not begun. */
  readonly nextId: bigint
  /** When the first unfinished event of each topic is due; null: there is none. */
  readonly firstByTopic: ReadonlyMap<string, number | null>
}

export class Horizon {
  readonly #since = new Map<string, number>()
  #last: Pick<Look, 'now' | 'nextId'> | null = null
  #begunAt = EVERYTHING
  #bound = EVERYTHING
  /** Transactions that have been running for longer, each with the bound before it was left behind. */
  readonly #leftBehind = new Map<bigint, number>()

  /** From when on to look at the topics that are known. */
  get since(): ReadonlyMap<string, number> {
    return this.#since
  }

  sinceOf(topic: string): number {
    return this.#since.get(topic) ?? EVERYTHING
  }

  /** Returns whether to look again, because this look may have missed something. */
  learn(look: Look): boolean {
    const { now, nextId, firstByTopic } = look
    if (now < (this.#last?.now ?? now) || now > this.#begunAt + AT_MOST_MS) this.#beginAnew(now)
    const back = this.#goBack(look)
    const from = Math.min(this.#advance(look), back)
    this.#last = { now, nextId }
    for (const [topic, first] of firstByTopic) {
      if (first === null && this.#since.size >= MOST_TOPICS) this.#since.delete(topic)
      else this.#since.set(topic, Math.min(first ?? Infinity, from))
    }
    return back < Infinity
  }

  /** To the look before this one. */
  #advance({ running }: Look): number {
    if (!this.#last) return EVERYTHING
    for (const id of running) {
      if (id < this.#last.nextId && !this.#leftBehind.has(id)) this.#leftBehind.set(id, this.#bound)
    }
    return (this.#bound = this.#last.now - SLACK_MS)
  }

  /** To where transactions that have ended now were left behind: this look may have missed what they saved. */
  #goBack({ running }: Look): number {
    const ended = [...this.#leftBehind].filter(([id]) => !running.has(id))
    for (const [id] of ended) this.#leftBehind.delete(id)
    return Math.min(Infinity, ...ended.map(([, bound]) => bound))
  }

  #beginAnew(now: number): void {
    this.#begunAt = now
    this.#last = null
    this.#bound = EVERYTHING
    this.#leftBehind.clear()
    for (const topic of this.#since.keys()) this.#since.set(topic, EVERYTHING)
  }
}
