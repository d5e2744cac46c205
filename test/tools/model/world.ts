// A small world, as plain data: the table, the broker, and a few processes with what they have in memory and
// on its way. Nothing here has a clock; time is a move like any other, so a process that does nothing while
// it passes is a frozen one.
import { passTime, type Table } from './table.ts'

/** A lease has two ticks: with the first one gone it still holds, and no send may begin on it. */
export const LEASE = 2

export type Kind = 'published' | 'failed' | 'dead' | 'untried'
export type Path = 'immediate' | 'fallback'

export interface Lease {
  readonly seq: number
  token: number
}

/** What no send has begun for yet. */
export interface Held extends Lease {
  /** Of its lease, by the process's own count. */
  left: number
}

export interface Outcome extends Lease {
  readonly kind: Kind
  readonly path: Path
}

/** What became of the events of one aggregate in a send. */
export type Fate =
  | 'written'
  | 'written, but not acknowledged'
  | 'not written'
  /** The first of them, and no more. */
  | 'written in part'

export interface Send {
  /** null when that process has died: what it sent may still arrive. */
  by: number | null
  readonly path: Path
  readonly admitted: Lease[]
  turnedAway: Lease[]
  readonly fate: Record<string, Fate>
  /** Whether publishTimeout has passed. */
  late: boolean
  /** Whether its leases are not renewed any more: the client should have given up long ago. */
  dropped: boolean
}

export interface Process {
  /** Of what it saves. */
  token: number
  frozen: boolean
  /** Lanes, by key: every event up to this one went, or goes, through it. */
  readonly covered: Record<string, number>
  waiting: Held[]
  /** COMMIT is through, its answer is on the way. */
  readonly confirming: (Held & { after: number | null })[][]
  /** The answer to a claim, on the way. */
  claimed: Held[] | null
  /** To be recorded. */
  outcomes: Outcome[]
}

export interface World {
  readonly table: Table
  readonly units: ('new' | 'committed' | 'rolled back')[]
  readonly processes: Process[]
  sends: Send[]
  /** Records of a process that has died, on their way to the database: each may get there, or not. */
  strays: Outcome[]
  /** What the broker holds. */
  readonly arrived: number[]
  faultsLeft: number
  /** Whether something has happened for which the documentation allows that an event arrives twice. */
  excused: boolean
}

/** What can be switched off, to see that its absence is noticed. */
export const RULES = [
  'confirmed commits only',
  'no send on a stale lease',
  'a send under way keeps its lease',
  'a renewal is for one token',
  'failures are fenced',
  'a timeout is no ack',
  'order on the immediate path',
  'order of claims',
  'leases end',
] as const
export type Rule = (typeof RULES)[number]

export type Property =
  | 'nothing is lost'
  | 'nothing is invented'
  | 'nothing is overtaken'
  | 'nothing arrives twice without an excuse'
  | 'published is terminal'
  | 'no send on a stale lease'

export interface Setting {
  /** Units of work, as the keys of their events. */
  readonly units: readonly (readonly string[])[]
  readonly processes: number
  /** How many things go wrong, at the most. */
  readonly faults: number
  /** An event that the broker refuses for good. */
  readonly poison: number | null
  readonly deadLettersHold: boolean
  /** The rule that is switched off. */
  readonly without: Rule | null
  /** The one property to look at. @default all of them */
  readonly lookFor?: Property
}

export class Violation extends Error {
  readonly property: Property

  constructor(property: Property) {
    super(property)
    this.property = property
  }
}

export function newWorld(setting: Setting): World {
  const count = setting.units.flat().length
  return {
    table: Array.from({ length: count }, () => null),
    units: setting.units.map(() => 'new'),
    processes: Array.from({ length: setting.processes }, (_, n) => newProcess(n)),
    sends: [],
    strays: [],
    arrived: [],
    faultsLeft: setting.faults,
    excused: false,
  }
}

export function newProcess(token: number): Process {
  return {
    token,
    frozen: false,
    covered: {},
    waiting: [],
    confirming: [],
    claimed: null,
    outcomes: [],
  }
}

/** What a process keeps the leases of. */
export function heldBy(world: World, n: number): { unsent: Held[]; others: Lease[] } {
  const { waiting, outcomes } = world.processes[n]!
  const sends = world.sends.filter(({ by, dropped }) => by === n && !dropped)
  const sent = sends.flatMap(({ admitted, turnedAway }) => [...admitted, ...turnedAway])
  return { unsent: waiting, others: [...outcomes, ...sent] }
}

export function tick(world: World): void {
  passTime(world.table)
  for (const { waiting, confirming, claimed } of world.processes) {
    for (const held of [...waiting, ...confirming.flat(), ...(claimed ?? [])]) {
      held.left = Math.max(0, held.left - 1)
    }
  }
}

/** One that has never meant anything to anybody. */
export function newToken({ table }: Pick<World, 'table'>): number {
  return Math.max(99, ...table.map((row) => row?.token ?? 0)) + 1
}

/** One text for all worlds between which nothing can tell. */
export function describeWorld(world: World): string {
  forgetWhenLeasesEnded(world.table)
  renameTokens(world)
  world.strays = sorted(world.strays)
  world.sends = sorted(world.sends)
  for (const process of world.processes) process.outcomes = sorted(process.outcomes)
  return JSON.stringify(world)
}

/** How long ago a lease ended does not matter, only which ended first. */
function forgetWhenLeasesEnded(table: Table): void {
  const due = table.flatMap((row) => (row?.status === 'pending' && row.left <= 0 ? [row.left] : []))
  const ranks = [...new Set(due)].toSorted((a, b) => b - a)
  for (const row of table) {
    if (!row) continue
    if (row.status !== 'pending') row.left = 0
    else if (row.left <= 0) row.left = -ranks.indexOf(row.left)
  }
}

/** A token that its row does not have any more is as good as any other: no row gets one twice. */
function renameTokens(world: World): void {
  const names = new Map(world.processes.map(({ token }, n) => [token, n]))
  const isCurrent = ({ seq, token }: Lease) => {
    return world.table[seq]?.status === 'pending' && world.table[seq].token === token
  }
  for (const row of world.table) {
    if (row?.token != null && !names.has(row.token)) names.set(row.token, names.size)
  }
  for (const lease of leasesIn(world)) lease.token = isCurrent(lease) ? names.get(lease.token)! : -1
  for (const row of world.table) if (row?.token != null) row.token = names.get(row.token)!
  for (const [n, process] of world.processes.entries()) process.token = n
}

function leasesIn({ processes, sends, strays }: World): Lease[] {
  return [
    ...processes.flatMap(({ waiting, confirming, claimed, outcomes }): Lease[] => {
      return [...waiting, ...confirming.flat(), ...(claimed ?? []), ...outcomes]
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
