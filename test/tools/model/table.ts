// The outbox table as plain data: what the statements in src/store/outbox do to it, in a few lines each.
// test/integration/table-model.test.ts runs the same commands against Postgres and compares.
// Time is counted in ticks; `left` says how many are left of a row's lease, and is 0 or less when it is due.

export interface Row {
  readonly key: string
  status: 'scheduled' | 'pending' | 'failed' | 'published' | 'dead_letter'
  token: number | null
  left: number
  /** Of an event that was scheduled: whether a claim has ever taken it. */
  isTaken?: boolean
}

/** By seq: one place per event, empty until it is saved, and when it is cancelled. */
export type Table = (Row | null)[]

export interface TableRules {
  readonly ordersClaims: boolean
  readonly fencesFailures: boolean
  readonly deadLettersHold: boolean
}

export interface Failure {
  readonly seq: number
  readonly token: number
  /** null: given back as it was. */
  readonly status: 'failed' | 'dead_letter' | null
}

/** How long a claim puts off what waits behind a dead letter: minutes, which are no tick. */
const HELD = 0

/** Seqs, in their order. */
export type Follows = readonly number[] | 'unknown'

export interface NewRow {
  readonly seq: number
  readonly key: string
  /** In how many ticks a scheduled event is due. */
  readonly dueIn?: number | undefined
}

/** Returns, per event, what it has to follow: the earlier ones of its key that are not out, except its own unit's. */
export function save(
  table: Table,
  events: readonly NewRow[],
  lease: { token: number; ticks: number },
  { deadLettersHold }: Pick<TableRules, 'deadLettersHold'>,
): Follows[] {
  const token = lease.ticks > 0 ? lease.token : null
  const before = [...table]
  return events.map(({ seq, key, dueIn }) => {
    table[seq] =
      dueIn === undefined
        ? { key, status: 'pending', token, left: lease.ticks }
        : { key, status: 'scheduled', token: null, left: dueIn, isTaken: false }
    if (token === null) return 'unknown'
    const unfinished = unfinishedOf(before, key)
    const dead = deadLettersHold ? deadOf(before, key).slice(0, 1) : []
    return [...unfinished, ...dead].filter((other) => other < seq).toSorted((a, b) => a - b)
  })
}

/** What is scheduled and due becomes pending, unless somebody else is writing to it. */
export function makeDue(table: Table, locked: readonly number[] = []): void {
  for (const [seq, row] of table.entries()) {
    const isDue = row?.status === 'scheduled' && row.left <= 0 && !locked.includes(seq)
    if (isDue) Object.assign(row, { status: 'pending', left: 0 })
  }
}

/** How a cancellation knows that a claim has the event. */
export type CancelFence = 'by claim' | 'by lease' | 'none'

/** Whether a cancellation, which deletes the row when it commits, would succeed. */
export function mayCancel(row: Row | null | undefined, fence: CancelFence): boolean {
  if (row?.isTaken === undefined || !['scheduled', 'pending'].includes(row.status)) return false
  if (fence === 'by lease') return row.token === null
  return fence === 'none' || !row.isTaken
}

export interface Claim {
  readonly limit: number
  readonly token: number
  readonly ticks: number
  /** Looks at the head of this key's lane, instead of at what is due. */
  readonly key?: string
}

/**
 * Takes over what is due, or what is at the head of a lane, and puts off what is due and may not go. `locked`: rows that
 * somebody else is writing to, and that are passed over.
 */
export function claim(
  table: Table,
  { limit, token, ticks, key: lane }: Claim,
  locked: readonly number[],
  { ordersClaims, deadLettersHold }: TableRules,
): number[] {
  const found = (lane === undefined ? due(table) : fromHead(table, lane))
    .filter((seq) => !locked.includes(seq))
    .slice(0, limit)
    .toSorted((a, b) => a - b)
  const isHeld = (seq: number) => {
    return deadLettersHold && deadOf(table, table[seq]!.key).some((dead) => dead < seq)
  }
  const taken: number[] = []
  for (const seq of found) {
    const ahead = unfinishedOf(table, table[seq]!.key).findLast((other) => other < seq)
    const isNext = ahead === undefined || taken.includes(ahead)
    if (!ordersClaims || (isNext && !isHeld(seq))) taken.push(seq)
  }
  const putOff = lane === undefined ? found.filter((seq) => !taken.includes(seq)) : []
  const lefts = putOff.map((seq) => {
    const head = unfinishedOf(table, table[seq]!.key)[0]!
    return isHeld(seq) ? HELD : Math.max(0, table[head]!.left) + ticks
  })
  for (const [n, seq] of putOff.entries())
    Object.assign(table[seq]!, { token: null, left: lefts[n] })
  for (const seq of taken) {
    const row = table[seq]!
    Object.assign(row, { token, left: ticks })
    if (row.isTaken === false) row.isTaken = true
  }
  return taken
}

function due(table: Table): number[] {
  const isDue = (row: Row | null) => row !== null && isUnfinished(row) && row.left <= 0
  const seqs = table.flatMap((row, seq) => (isDue(row) ? [seq] : []))
  return seqs.toSorted((a, b) => table[a]!.left - table[b]!.left || a - b)
}

function fromHead(table: Table, key: string): number[] {
  const mayGo = (seq: number) => table[seq]!.left <= 0 || isPutOff(table[seq]!)
  const unfinished = unfinishedOf(table, key)
  return unfinished.length > 0 && mayGo(unfinished[0]!) ? unfinished.filter(mayGo) : []
}

export function isPutOff({ status, token, left }: Row): boolean {
  return status === 'pending' && token === null && left > 0
}

export function isUnfinished({ status }: Row): boolean {
  return status === 'pending' || status === 'failed'
}

/** Answers those that were still held, as they are held. */
export function renew<Lease extends { readonly seq: number; readonly token: number }>(
  table: Table,
  leases: readonly Lease[],
  ticks: number,
): Lease[] {
  const held = leases.filter(({ seq, token }) => isHeldBy(table[seq], token))
  for (const { seq } of held) table[seq]!.left = ticks
  return held
}

/** Answers those that were not published before. */
export function recordPublished(table: Table, seqs: readonly number[]): number[] {
  const news = seqs.filter((seq) => table[seq] && table[seq].status !== 'published')
  for (const seq of news) Object.assign(table[seq]!, { status: 'published', token: null })
  return news
}

/** Answers those that were recorded. */
export function recordFailed(
  table: Table,
  failures: readonly Failure[],
  { fencesFailures }: Pick<TableRules, 'fencesFailures'>,
): Failure[] {
  const held = failures.filter(({ seq, token }) => {
    return isHeldBy(table[seq], token) || (table[seq] && !fencesFailures)
  })
  for (const { seq, status } of held) {
    const row = table[seq]!
    Object.assign(row, { status: status ?? row.status, token: null, left: 0 })
  }
  return held
}

export function passTime(table: Table): void {
  for (const row of table) if (row) row.left -= 1
}

function isHeldBy(row: Row | null | undefined, token: number): boolean {
  return row != null && isUnfinished(row) && row.token === token
}

function unfinishedOf(table: Table, key: string): number[] {
  return table.flatMap((row, seq) => (row?.key === key && isUnfinished(row) ? [seq] : []))
}

function deadOf(table: Table, key: string): number[] {
  return table.flatMap((row, seq) =>
    row?.key === key && row.status === 'dead_letter' ? [seq] : [],
  )
}
