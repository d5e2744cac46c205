// Which events had to come after which, by what the units of work themselves saw. An event follows
// - all that had committed when its unit began,
// - if its unit locked the account: what units emitted that had the lock before,
// - what its own unit emitted before.
// Two units that overlapped, of which one did not lock the account, owe each other nothing.
import { groupBy } from '../../../src/runtime/group-by.ts'

export interface Placed {
  readonly account: string
  /** Rises within a unit, and from one unit to the next among those that lock the account. */
  readonly n: number
  /** Whether its unit locked the account. */
  readonly locked: boolean
  /** The transaction of its unit. */
  readonly xid: number
  /** What its unit could see when it began, as pg_current_snapshot() says it: xmin:xmax:xip. */
  readonly snapshot: string
  /** Where it arrived for the first time. */
  readonly position: number
}

/** How many came before one that they had to follow. */
export function countOutOfOrder(events: readonly Placed[]): number {
  const accounts = [...groupBy(events, ({ account }) => account).values()]
  return accounts.reduce((sum, account) => sum + countInAccount(account), 0)
}

function countInAccount(events: readonly Placed[]): number {
  const lastBefore = lastSeenBy(events)
  const lastOfUnit = new Map<number, number>()
  let lastOfLocking = NOWHERE
  let count = 0
  for (const { xid, snapshot, locked, position } of events.toSorted((a, b) => a.n - b.n)) {
    const own = lastOfUnit.get(xid) ?? NOWHERE
    const others = locked ? lastOfLocking : NOWHERE
    if (position < Math.max(own, others, lastBefore(snapshot))) count += 1
    lastOfUnit.set(xid, Math.max(own, position))
    if (locked) lastOfLocking = Math.max(lastOfLocking, position)
  }
  return count
}

/**
 * The last arrival among all that a snapshot shows. Below xmin every transaction is over, so their last is
 * known beforehand; only those from there up to xmax are looked at one by one.
 */
function lastSeenBy(events: readonly Placed[]): (snapshot: string) => number {
  const byXid = events.toSorted((a, b) => a.xid - b.xid)
  const lastUpTo: number[] = []
  for (const { position } of byXid) {
    lastUpTo.push(Math.max(lastUpTo.at(-1) ?? NOWHERE, position))
  }
  return (snapshot) => {
    const { xmin, xmax, running } = parseSnapshot(snapshot)
    const over = firstFrom(byXid, xmin)
    let last = lastUpTo[over - 1] ?? NOWHERE
    for (let n = over; n < byXid.length && byXid[n]!.xid < xmax; n += 1) {
      if (!running.has(byXid[n]!.xid)) last = Math.max(last, byXid[n]!.position)
    }
    return last
  }
}

function parseSnapshot(snapshot: string) {
  const [xmin, xmax, running] = snapshot.split(':') as [string, string, string]
  return {
    xmin: Number(xmin),
    xmax: Number(xmax),
    running: new Set(running.split(',').map(Number)),
  }
}

/** The index of the first that has this xid or a later one. */
function firstFrom(byXid: readonly Placed[], xid: number): number {
  let [low, high] = [0, byXid.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (byXid[middle]!.xid < xid) low = middle + 1
    else high = middle
  }
  return low
}

const NOWHERE = -1
