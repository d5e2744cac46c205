// One text for all worlds between which nothing can tell. What cannot matter any more is forgotten, and what has no
// order is sorted: the fewer texts there are, the more worlds can be explored.
import { isUnfinished, type Row } from './table.ts'
import {
  isFollowed,
  type Lease,
  type Outcome,
  type Process,
  type Rule,
  type Send,
  type Setting,
  type World,
} from './world.ts'

/** A lease that does not hold any more. */
const ENDED = -1

export function describeWorld(world: World, { without }: Pick<Setting, 'without'>): string {
  world.sends = world.sends.flatMap((send) => (send.by === null ? strayOf(send, world) : [send]))
  forgetWhenLeasesEnded(rowsOf(world))
  forgetWhatHasArrived(world)
  for (const [n, process] of world.processes.entries()) forgetAcks(world, n, process)
  renameTokens(world)
  const isNews = (outcome: Outcome) => changesAnything(outcome, world, without)
  world.strays = sorted(world.strays.filter(isNews))
  world.sends = sorted(world.sends)
  world.open = sorted(world.open)
  for (const process of world.processes) {
    process.outcomes = sorted(process.outcomes.filter(isNews))
    process.confirming = sorted(process.confirming)
  }
  return JSON.stringify(world)
}

/** A record that changes nothing might as well be written already. */
function changesAnything(outcome: Outcome, { table }: World, without: Rule | null): boolean {
  if (outcome.kind === 'published') return table[outcome.seq]?.status !== 'published'
  return outcome.token !== ENDED || without === 'failures are fenced'
}

/** How long ago a lease ended does not matter, only which ended first. */
function forgetWhenLeasesEnded(rows: readonly Row[]): void {
  const due = rows.flatMap((row) => (isUnfinished(row) && row.left <= 0 ? [row.left] : []))
  const ranks = [...new Set(due)].toSorted((a, b) => b - a)
  for (const row of rows) {
    if (!isUnfinished(row)) row.left = 0
    else if (row.left <= 0) row.left = -ranks.indexOf(row.left)
  }
}

function forgetWhatHasArrived({ mustFollow, arrived }: World): void {
  for (const [seq, earlier] of mustFollow.entries()) {
    if (earlier.length === 0) continue
    mustFollow[seq] = arrived.includes(seq) ? [] : earlier.filter((one) => !arrived.includes(one))
  }
}

/** A send that no process waits for matters only for what has not arrived: the second arrival is excused. */
function strayOf({ admitted, fate, ...rest }: Send, { arrived, table }: World): Send[] {
  const isOpen = (seq: number) => !arrived.includes(seq) && !fate[table[seq]?.key ?? '']
  const left = admitted.filter(({ seq }) => isOpen(seq)).map(({ seq }) => ({ seq, token: ENDED }))
  const settled = { path: 'immediate', turnedAway: [], late: false, dropped: false } as const
  return left.length === 0
    ? []
    : [{ ...rest, ...settled, turnedAway: [], fate: {}, admitted: left }]
}

/** An ack matters only while an event that follows may be saved, or is saved and not accepted yet. */
function forgetAcks({ table, units, open }: World, n: number, process: Process): void {
  if (process.acked.length === 0) return
  const committing = [...open.filter(({ by }) => by === n), ...process.confirming]
  const saved = committing.flatMap((one) => one.saved)
  const matters = (seq: number) => {
    const mayBeFollowed = units.includes('new') && table[seq]?.status !== 'published'
    return mayBeFollowed || isFollowed(seq, saved)
  }
  process.acked = sorted([...new Set(process.acked.filter(matters))])
}

/**
 * No row gets a token twice, so all that matters is whether a lease has its row's token; and to covered-seq.ts,
 * whether that is the token of a process.
 */
function renameTokens(world: World): void {
  const own = new Map(world.processes.map(({ token }, n) => [token, n]))
  const another = world.processes.length
  const rename = (token: number) => own.get(token) ?? another
  const held = new Set<Row>()
  for (const lease of leasesIn(world)) {
    const row = world.table[lease.seq]
    const isCurrent = row != null && isUnfinished(row) && row.token === lease.token
    if (isCurrent) held.add(row)
    lease.token = isCurrent ? rename(lease.token) : ENDED
  }
  for (const one of world.open.flatMap(({ rows, saved }) => [...rows, ...saved])) {
    if (one.token !== null) one.token = rename(one.token)
  }
  for (const row of world.table) {
    if (!row || row.token === null) continue
    row.token = held.has(row) || own.has(row.token) ? rename(row.token) : null
  }
  for (const [n, process] of world.processes.entries()) process.token = n
}

function rowsOf({ table, open }: World): Row[] {
  return [...table.filter((row) => row !== null), ...open.flatMap(({ rows }) => rows)]
}

function leasesIn({ processes, sends, strays }: World): Lease[] {
  return [
    ...processes.flatMap(({ waiting, confirming, claimed, outcomes }): Lease[] => {
      return [
        ...waiting,
        ...confirming.flatMap(({ saved }) => saved),
        ...(claimed ?? []),
        ...outcomes,
      ]
    }),
    ...sends.flatMap(({ admitted, turnedAway }) => [...admitted, ...turnedAway]),
    ...strays,
  ]
}

function sorted<T>(items: T[]): T[] {
  if (items.length < 2) return items
  const texts = new Map(items.map((item) => [item, JSON.stringify(item)]))
  return items.toSorted((a, b) => (texts.get(a)! < texts.get(b)! ? -1 : 1))
}
