// A small world, as plain data: the table, the broker, and a few processes with what they have in memory and
// on its way. Nothing here has a clock; time is a move like any other, so a process that does nothing while
// it passes is a frozen one.
import { type Follows, passTime, type Row, type Table } from './table.ts'

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

/** An event as the save returns it. */
export interface Saved extends Held {
  readonly follows: Follows
}

/** COMMIT, or its answer, on the way. */
export interface Committing {
  saved: Saved[]
  /** Whether it takes so long that leases may end meanwhile. */
  isSlow: boolean
}

/** A unit of work between its save and COMMIT. */
export interface Transaction extends Committing {
  /** null when that process has died: its COMMIT may still arrive. */
  by: number | null
  readonly unit: number
  /** Not in the table before COMMIT. */
  readonly rows: Row[]
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
  /** Events whose ack it has heard. */
  acked: number[]
  /** By key: see covered-seq.ts. */
  readonly covered: Record<string, number>
  waiting: Held[]
  /** COMMIT is through, its answer is on the way. */
  confirming: Committing[]
  /** The answer to a claim, on the way. */
  claimed: Held[] | null
  /** To be recorded. */
  outcomes: Outcome[]
}

export interface World {
  readonly table: Table
  readonly units: ('new' | 'saved' | 'committed' | 'rolled back')[]
  open: Transaction[]
  /** By event: what has to arrive before it, as it was committed when this was saved, or saved together with it. */
  readonly mustFollow: number[][]
  readonly processes: Process[]
  sends: Send[]
  /** Records of a process that has died, on their way to the database: each may get there, or not. */
  strays: Outcome[]
  /** What the broker holds. */
  readonly arrived: number[]
  /** The event that a transaction has deleted which has not ended. */
  cancelling: number | null
  /** Events whose cancellation has committed. */
  readonly cancelled: number[]
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
  'what an event follows is a set',
  'order of claims',
  'leases end',
  'a cancellation is fenced against a claim',
  'what was claimed once cannot be cancelled',
  'a claim skips what is being cancelled',
  'a scheduled event has a lane of its own',
] as const
export type Rule = (typeof RULES)[number]

export type Property =
  | 'nothing is lost'
  | 'nothing is invented'
  | 'nothing is overtaken'
  | 'nothing arrives twice without an excuse'
  | 'published is terminal'
  | 'no send on a stale lease'
  | 'what is cancelled never goes out'
  | 'a scheduled event waits for none, and none for it'

export interface Setting {
  /** Units of work, as the keys of their events. */
  readonly units: readonly (readonly string[])[]
  /** The units that do not lock their aggregates: others may save and commit between their save and COMMIT. */
  readonly unlocked: readonly number[]
  readonly processes: number
  /** How many things go wrong, at the most. */
  readonly faults: number
  /** An event that the broker refuses for good. */
  readonly poison: number | null
  readonly deadLettersHold: boolean
  /** Events that are scheduled, and may be cancelled at any moment. */
  readonly scheduled: readonly number[]
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
    open: [],
    mustFollow: Array.from({ length: count }, () => []),
    processes: Array.from({ length: setting.processes }, (_, n) => newProcess(n)),
    sends: [],
    strays: [],
    arrived: [],
    cancelling: null,
    cancelled: [],
    faultsLeft: setting.faults,
    excused: false,
  }
}

/** Several times as fast as structuredClone() and JSON. */
export function copyWorld(world: World): World {
  return {
    ...world,
    table: world.table.map((row) => row && { ...row }),
    units: [...world.units],
    open: world.open.map((one) => ({ ...one, rows: copyAll(one.rows), saved: copyAll(one.saved) })),
    mustFollow: [...world.mustFollow],
    processes: world.processes.map((process) => ({
      ...process,
      acked: [...process.acked],
      covered: { ...process.covered },
      waiting: copyAll(process.waiting),
      confirming: process.confirming.map((one) => ({ ...one, saved: copyAll(one.saved) })),
      claimed: process.claimed && copyAll(process.claimed),
      outcomes: copyAll(process.outcomes),
    })),
    sends: world.sends.map((send) => ({
      ...send,
      admitted: copyAll(send.admitted),
      turnedAway: copyAll(send.turnedAway),
      fate: { ...send.fate },
    })),
    strays: copyAll(world.strays),
    arrived: [...world.arrived],
    cancelled: [...world.cancelled],
  }
}

function copyAll<T extends object>(items: readonly T[]): T[] {
  return items.map((item) => ({ ...item }))
}

export function newProcess(token: number): Process {
  return {
    token,
    frozen: false,
    acked: [],
    covered: {},
    waiting: [],
    confirming: [],
    claimed: null,
    outcomes: [],
  }
}

/** Whether any of these has to follow this event. */
export function isFollowed(seq: number, saved: readonly Saved[]): boolean {
  return saved.some(({ follows }) => follows !== 'unknown' && follows.includes(seq))
}

/** What a process keeps the leases of. */
export function heldBy(world: World, n: number): { unsent: Held[]; others: Lease[] } {
  const { waiting, outcomes } = world.processes[n]!
  const sends = world.sends.filter(({ by, dropped }) => by === n && !dropped)
  const sent = sends.flatMap(({ admitted, turnedAway }) => [...admitted, ...turnedAway])
  return { unsent: waiting, others: [...outcomes, ...sent] }
}

export function tick(world: World): void {
  passTime([...world.table, ...world.open.flatMap(({ rows }) => rows)])
  const unsent = world.processes.flatMap(({ waiting, confirming, claimed }): Held[] => {
    return [...waiting, ...confirming.flatMap(({ saved }) => saved), ...(claimed ?? [])]
  })
  for (const held of [...unsent, ...world.open.flatMap(({ saved }) => saved)]) {
    held.left = Math.max(0, held.left - 1)
  }
}

/** One that has never meant anything to anybody. */
export function newToken({ table }: Pick<World, 'table'>): number {
  return Math.max(99, ...table.map((row) => row?.token ?? 0)) + 1
}
