// The outbox table as plain data: what the statements of store/postgres.ts do to it, in a few lines each.
// test/integration/table-model.test.ts runs the same commands against Postgres and compares.
// Time is counted in ticks; `left` says how many are left of a row's lease, and is 0 or less when it is due.

export interface Row {
  readonly key: string
  status: 'pending' | 'published' | 'dead_letter'
  token: number | null
  left: number
}

/** By seq: one place per event, empty until it is saved. */
export type Table = (Row | null)[]

export interface TableRules {
  readonly ordersClaims: boolean
  readonly fencesFailures: boolean
  readonly deadLettersHold: boolean
}

export interface Failure {
  readonly seq: number
  readonly token: number
  readonly status: 'pending' | 'dead_letter'
}

/** Seqs, in their order. */
export type Follows = readonly number[] | 'unknown'

/** Returns, per event, what it has to follow: the earlier ones of its key that are not out, except its own unit's. */
export function save(
  table: Table,
  events: readonly { seq: number; key: string }[],
  lease: { token: number; ticks: number },
  { deadLettersHold }: Pick<TableRules, 'deadLettersHold'>,
): Follows[] {
  const token = lease.ticks > 0 ? lease.token : null
  const before = [...table]
  return events.map(({ seq, key }) => {
    table[seq] = { key, status: 'pending', token, left: lease.ticks }
    if (token === null) return 'unknown'
    const pending = seqsOf(before, key, 'pending')
    const dead = deadLettersHold ? seqsOf(before, key, 'dead_letter').slice(0, 1) : []
    return [...pending, ...dead].filter((other) => other < seq).toSorted((a, b) => a - b)
  })
}

/** Takes over what is due. `locked`: rows that somebody else is writing to, and that are passed over. */
export function claim(
  table: Table,
  { limit, token, ticks }: { limit: number; token: number; ticks: number },
  locked: readonly number[],
  { ordersClaims, deadLettersHold }: TableRules,
): number[] {
  const isHeld = (seq: number) => deadLettersHold && seq > firstDead(table, table[seq]!.key)
  const candidates = table.flatMap((row, seq) => {
    if (row?.status !== 'pending' || row.left > 0 || locked.includes(seq)) return []
    if (!ordersClaims) return [seq]
    const head = seqsOf(table, row.key, 'pending')[0]!
    return !isHeld(head) && row.left >= table[head]!.left ? [seq] : []
  })
  const first = candidates
    .toSorted((a, b) => table[a]!.left - table[b]!.left || a - b)
    .slice(0, limit)
    .toSorted((a, b) => a - b)
  const taken = first.filter((seq) => {
    if (!ordersClaims) return true
    const { key } = table[seq]!
    const oldest = seqsOf(table, key, 'pending')
    const place = first.filter((other) => table[other]!.key === key).indexOf(seq)
    return oldest[place] === seq && !isHeld(seq)
  })
  for (const seq of taken) Object.assign(table[seq]!, { token, left: ticks })
  return taken
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
  const news = seqs.filter((seq) => table[seq]!.status !== 'published')
  for (const seq of news) Object.assign(table[seq]!, { status: 'published', token: null })
  return news
}

/** Answers those that were recorded. */
export function recordFailed(
  table: Table,
  failures: readonly Failure[],
  { fencesFailures }: Pick<TableRules, 'fencesFailures'>,
): Failure[] {
  const held = failures.filter(({ seq, token }) => isHeldBy(table[seq], token) || !fencesFailures)
  for (const { seq, status } of held) Object.assign(table[seq]!, { status, token: null, left: 0 })
  return held
}

export function passTime(table: Table): void {
  for (const row of table) if (row) row.left -= 1
}

function isHeldBy(row: Row | null | undefined, token: number): boolean {
  return row?.status === 'pending' && row.token === token
}

function seqsOf(table: Table, key: string, status: Row['status']): number[] {
  return table.flatMap((row, seq) => (row?.key === key && row.status === status ? [seq] : []))
}

function firstDead(table: Table, key: string): number {
  return seqsOf(table, key, 'dead_letter')[0] ?? Number.POSITIVE_INFINITY
}
