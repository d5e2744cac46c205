// What each thing that can happen does to a small world, in the order of the path. What the product decides is
// asked of the product's own functions in src/delivery; what its statements do is in table.ts. Longer than
// other files, as a world has to be followed from emit to record in one place.
import { keepsOthersBack, mayFollow, splitInOrder } from '../../../src/delivery/order.ts'
import { isAged, isFresh } from '../../../src/delivery/leases.ts'
import { classifyFailure } from '../../../src/delivery/send.ts'
import { inOwnHands, takeByNumber } from './covered-seq.ts'
import {
  type CancelFence,
  claim,
  type Follows,
  isUnfinished,
  makeDue,
  mayCancel,
  type NewRow,
  renew,
  save,
  recordFailed,
  recordPublished,
  type Table,
  type TableRules,
} from './table.ts'
import {
  type Committing,
  type Fate,
  type Held,
  heldBy,
  type Kind,
  LEASE,
  type Lease,
  newProcess,
  newToken,
  type Outcome,
  type Path,
  type Property,
  type Rule,
  type Saved,
  type Send,
  type Setting,
  tick,
  type Transaction,
  Violation,
  type World,
} from './world.ts'

const FAILED = new Error('in the model')
const NO_BACKOFF = { backoffBaseMs: 0, backoffMaxMs: 0 }
const NEW_EVENT = { attempts: 0, maxAttempts: 10 }

const NO_ORDER: Property = 'a scheduled event waits for none, and none for it'

/** When a scheduled event is due is a move of its own, whatever else takes its time. */
const LATER = 1

/** What a record makes of a row, by what became of its event. */
const STATUS = { failed: 'failed', dead: 'dead_letter', untried: null } as const

export class Steps {
  readonly #setting: Setting
  readonly #keys: readonly string[]
  readonly #tableRules: TableRules

  constructor(setting: Setting) {
    this.#setting = setting
    const hasOwnLane = (seq: number) =>
      this.isScheduled(seq) && this.#keeps('a scheduled event has a lane of its own')
    const keys = setting.units.flat()
    this.#keys = keys.map((key, seq) => (hasOwnLane(seq) ? `${key} later` : key))
    this.#tableRules = {
      ordersClaims: this.#keeps('order of claims'),
      fencesFailures: this.#keeps('failures are fenced'),
      deadLettersHold: setting.deadLettersHold,
    }
  }

  /** `ticks`: of the lease that the events are born with. */
  save(world: World, n: number, u: number, ticks: number): void {
    const { table, units, open, mustFollow, processes } = world
    const { token } = processes[n]!
    const events = this.#eventsOf(u)
    const follows = save(table, events, { token, ticks }, this.#tableRules)
    if (follows.flat().some((seq) => this.isScheduled(Number(seq)))) this.#violate(NO_ORDER)
    for (const { seq } of events) mustFollow[seq] = this.#earlierOf(seq, table)
    // No other statement sees them before COMMIT.
    const rows = events.map(({ seq }) => table[seq]!)
    for (const { seq } of events) table[seq] = null
    const saved = events.map(({ seq }, i): Saved => {
      const known = this.#keepsSets ? follows[i]! : inOwnHands(follows[i]!, token, table)
      return { seq, token, left: ticks, follows: known }
    })
    units[u] = 'saved'
    const own = ticks > 0 ? saved.filter(({ seq }) => !this.isScheduled(seq)) : []
    open.push({ by: n, unit: u, rows, saved: own, isSlow: false })
  }

  commit(world: World, t: number, isConfirmed: boolean): void {
    const [{ by, unit, rows, saved, isSlow }] = world.open.splice(t, 1) as [Transaction]
    for (const [i, { seq }] of this.#eventsOf(unit).entries()) world.table[seq] = rows[i]!
    world.units[unit] = 'committed'
    if (by === null || saved.length === 0) return
    const isHeard = isConfirmed || !this.#keeps('confirmed commits only')
    if (isHeard) world.processes[by]!.confirming.push({ saved, isSlow })
  }

  rollBack(world: World, t: number): void {
    const [{ by, unit, saved, isSlow }] = world.open.splice(t, 1) as [Transaction]
    world.units[unit] = 'rolled back'
    for (const { seq } of this.#eventsOf(unit)) world.mustFollow[seq] = []
    if (this.#keeps('confirmed commits only')) return
    world.processes[by!]!.confirming.push({ saved, isSlow })
  }

  /** `forgetsAcks`: as a process may at any time, to keep its memory bounded. */
  accept(world: World, n: number, i: number, forgetsAcks: boolean): void {
    const process = world.processes[n]!
    const [{ saved }] = process.confirming.splice(i, 1) as [Committing]
    if (forgetsAcks) process.acked = []
    const { left } = splitInOrder(
      saved,
      ({ seq }) => this.keyOf(seq),
      ({ follows, ...held }) => {
        const isTaken = this.#mayQueue(world, n, held.seq, follows)
        if (isTaken) process.waiting.push(held)
        return isTaken
      },
    )
    this.#giveBack(world, n, left, 'immediate')
  }

  #mayQueue(world: World, n: number, seq: number, follows: Follows): boolean {
    if (!this.#keeps('order on the immediate path')) return true
    if (this.#keepsSets) return mayFollow(follows, (other) => this.#isOnItsWay(world, n, other))
    const event = { seq, key: this.keyOf(seq) }
    return takeByNumber(event, follows, world.processes[n]!.covered)
  }

  #isOnItsWay(world: World, n: number, seq: number): boolean {
    const { acked, waiting } = world.processes[n]!
    const inLane = [...waiting, ...this.#sentByLanes(world, n)]
    return acked.includes(seq) || inLane.some((lease) => lease.seq === seq)
  }

  /** What waits in lanes that are not in a send already. */
  ready(world: World, n: number): Held[] {
    const busy = this.keysOf(this.#sentByLanes(world, n))
    return world.processes[n]!.waiting.filter(({ seq }) => !busy.includes(this.keyOf(seq)))
  }

  /** With what was turned away: a lane learns of that when the send is over. */
  #sentByLanes({ sends }: World, n: number): Lease[] {
    return sends.flatMap(({ by, path, late, admitted, turnedAway }) => {
      return by === n && path === 'immediate' && !late ? [...admitted, ...turnedAway] : []
    })
  }

  /** `turnAway`: by a circuit, which in this world may be open at any time. */
  sendWaiting(world: World, n: number, turnAway: boolean): void {
    const batch = this.ready(world, n)
    const process = world.processes[n]!
    process.waiting = process.waiting.filter((held) => !batch.includes(held))
    this.#deliver(world, n, batch, 'immediate', turnAway)
  }

  becomeDue({ table, cancelling }: World, seq: number): void {
    table[seq]!.left = 0
    makeDue(table, cancelling === null ? [] : [cancelling])
  }

  mayCancel({ table, cancelling }: World, seq: number): boolean {
    return cancelling === null && mayCancel(table[seq], this.#cancelFence)
  }

  /** The transaction around a cancellation that has reported success commits. */
  commitCancel(world: World): void {
    const seq = world.cancelling!
    world.cancelling = null
    world.table[seq] = null
    world.cancelled.push(seq)
    if (world.arrived.includes(seq)) this.#violate('what is cancelled never goes out')
  }

  get #cancelFence(): CancelFence {
    if (!this.#keeps('a cancellation is fenced against a claim')) return 'none'
    return this.#keeps('what was claimed once cannot be cancelled') ? 'by claim' : 'by lease'
  }

  claim(
    { table, processes, cancelling }: World,
    n: number,
    how: { readonly key?: string; readonly limit?: number; readonly locked?: number[] } = {},
  ): void {
    const { key, limit = table.length, locked = [] } = how
    const token = newToken({ table })
    const lane = key === undefined ? {} : { key }
    const request = { limit, token, ticks: LEASE, ...lane }
    const skipsCancelled =
      cancelling !== null && this.#keeps('a claim skips what is being cancelled')
    const skipped = skipsCancelled ? [...locked, cancelling] : locked
    const before = table.map((row) => row && { ...row })
    const taken = claim(table, request, skipped, this.#tableRules)
    if (key === undefined) this.#checkNoOrder(before, [...taken, ...skipped])
    if (taken.length === 0) return
    processes[n]!.claimed = taken.map((seq) => ({ seq, token, left: LEASE }))
  }

  /** Of what a claim has left. */
  #checkNoOrder(table: Table, others: readonly number[]): void {
    const isFree = (row: Table[number], seq: number) =>
      row && isUnfinished(row) && row.left <= 0 && !others.includes(seq)
    for (const [seq, row] of table.entries()) {
      if (!isFree(row, seq)) continue
      const ahead = this.#earlierOf(seq, table).filter((one) => isUnfinished(table[one]!))
      const waits = this.isScheduled(seq) || ahead.every((one) => this.isScheduled(one))
      if (ahead.length > 0 && waits) this.#violate(NO_ORDER)
    }
  }

  sendClaimed(world: World, n: number, turnAway: boolean): void {
    const process = world.processes[n]!
    const batch = process.claimed!
    process.claimed = null
    this.#deliver(world, n, batch, 'fallback', turnAway)
  }

  #deliver(world: World, n: number, batch: Held[], path: Path, turnAway: boolean): void {
    const mayBeStale = !this.#keeps('no send on a stale lease')
    const { taken, left } = splitInOrder(
      batch,
      ({ seq }) => this.keyOf(seq),
      (held) => !turnAway && (mayBeStale || isFresh(held.left, LEASE)),
    )
    for (const { seq, token } of taken) {
      const row = world.table[seq]
      const isMine = row?.token === token && row.left > 0
      if (row && isUnfinished(row) && !isMine) this.#violate('no send on a stale lease')
    }
    const [admitted, turnedAway] = [taken.map(leaseOf), left.map(leaseOf)]
    const send: Send = {
      by: n,
      path,
      admitted,
      turnedAway,
      fate: {},
      late: false,
      dropped: false,
    }
    if (admitted.length > 0) world.sends.push(send)
    else this.#endSend(world, n, send, [])
  }

  arrive(world: World, s: number, key: string, fate: Fate): void {
    const send = world.sends[s]!
    send.fate[key] = fate
    if (fate === 'written, but not acknowledged') world.excused = true
    const ofKey = send.admitted.filter(({ seq }) => this.keyOf(seq) === key)
    const written = { 'not written': 0, 'written in part': 1 }[fate as string] ?? ofKey.length
    for (const { seq } of ofKey.slice(0, written)) {
      if (seq !== this.#setting.poison) this.#write(world, seq)
      else if (this.#setting.deadLettersHold) break
    }
    if (send.by === null && this.isOver(send)) world.sends.splice(s, 1)
  }

  /** The client gives up, and what it has sent arrives all the same, at any time from now on. */
  loseTrack(world: World, s: number, key: string): void {
    const send = world.sends[s]!
    const admitted = send.admitted.filter(({ seq }) => this.keyOf(seq) === key).map(leaseOf)
    send.fate[key] = 'not written'
    world.excused = true
    world.sends.push({ ...send, by: null, admitted, turnedAway: [], fate: {} })
  }

  #write({ arrived, cancelled, units, excused, mustFollow }: World, seq: number): void {
    const { poison, deadLettersHold } = this.#setting
    if (cancelled.includes(seq)) this.#violate('what is cancelled never goes out')
    if (units[this.#unitOf(seq)] !== 'committed') this.#violate('nothing is invented')
    if (arrived.includes(seq)) {
      if (!excused) this.#violate('nothing arrives twice without an excuse')
      return
    }
    const isMissing = (other: number) =>
      !arrived.includes(other) && (other !== poison || deadLettersHold)
    if (mustFollow[seq]!.some(isMissing)) this.#violate('nothing is overtaken')
    arrived.push(seq)
    arrived.sort((a, b) => a - b)
  }

  /** Whether it is settled what became of all of it. */
  isOver({ admitted, fate }: Send): boolean {
    return this.keysOf(admitted).every((key) => fate[key])
  }

  answer(world: World, s: number): void {
    const [send] = world.sends.splice(s, 1)
    const { by, path, late, admitted, fate } = send!
    const heldKeys = new Set<string>()
    const outcomes = admitted.map((lease): Outcome => {
      const key = this.keyOf(lease.seq)
      const kind = this.#outcomeOf(lease.seq, fate[key]!, heldKeys.has(key))
      const isLast = fate[key] === 'written in part'
      if (isLast || (kind === 'dead' && this.#setting.deadLettersHold)) heldKeys.add(key)
      return { ...lease, path, kind }
    })
    const acks = outcomes.filter(({ kind }) => kind === 'published')
    for (const { seq } of acks) world.processes[by!]!.acked.push(seq)
    if (late) world.processes[by!]!.outcomes.push(...outcomes)
    else this.#endSend(world, by!, send!, outcomes)
  }

  #outcomeOf(seq: number, fate: Fate, isHeld: boolean): Kind {
    const fail = (kind: 'transient' | 'permanent' | 'held') =>
      classifyFailure(NEW_EVENT, { ok: false, kind, error: FAILED }, NO_BACKOFF).kind
    if (isHeld) return fail('held')
    if (fate !== 'written' && fate !== 'written in part') return fail('transient')
    return seq === this.#setting.poison ? fail('permanent') : 'published'
  }

  timeOut(world: World, s: number): void {
    const send = world.sends[s]!
    const { by, path, admitted, turnedAway } = send
    send.late = true
    send.turnedAway = []
    if (!this.#keeps('a timeout is no ack')) {
      const acks = admitted.map((lease): Outcome => ({ ...lease, path, kind: 'published' }))
      world.processes[by!]!.outcomes.push(...acks)
    }
    this.#giveBack(world, by!, turnedAway, path)
    if (path === 'immediate') this.#abandon(world, by!, [...admitted, ...turnedAway])
  }

  /** The client should have settled by now: nobody keeps the leases up any longer. */
  drop(world: World, s: number): void {
    world.excused = true
    world.sends[s]!.dropped = true
  }

  #endSend(world: World, n: number, { path, turnedAway }: Send, outcomes: Outcome[]): void {
    world.processes[n]!.outcomes.push(...outcomes)
    this.#giveBack(world, n, turnedAway, path)
    if (path === 'fallback') return
    const { deadLettersHold } = this.#setting
    const unsent = outcomes.filter(({ kind }) => keepsOthersBack(kind, deadLettersHold))
    this.#abandon(world, n, [...unsent, ...turnedAway])
  }

  #abandon(world: World, n: number, unsent: readonly Lease[]): void {
    const process = world.processes[n]!
    const keys = this.keysOf(unsent)
    const isLeft = ({ seq }: Held) => keys.includes(this.keyOf(seq))
    const left = process.waiting.filter(isLeft)
    process.waiting = process.waiting.filter((held) => !isLeft(held))
    if (!this.#keepsSets) for (const key of keys) process.covered[key] = -1
    this.#giveBack(world, n, left, 'immediate')
  }

  #giveBack(world: World, n: number, left: readonly Lease[], path: Path): void {
    const untried = left.map((lease): Outcome => ({ ...leaseOf(lease), path, kind: 'untried' }))
    world.processes[n]!.outcomes.push(...untried)
  }

  record({ table, arrived }: World, outcomes: readonly Outcome[]): void {
    const published = outcomes.filter(({ kind }) => kind === 'published')
    const before = table.map((row) => row?.status)
    const seqs = published.map(({ seq }) => seq)
    recordPublished(table, seqs)
    const failures = outcomes.flatMap(({ seq, token, kind }) => {
      return kind === 'published' ? [] : [{ seq, token, status: STATUS[kind] }]
    })
    recordFailed(table, failures, this.#tableRules)
    if (seqs.some((seq) => !arrived.includes(seq))) this.#violate('nothing is lost')
    const isUndone = (row: World['table'][number], seq: number) =>
      before[seq] === 'published' && row?.status !== 'published'
    if (table.some(isUndone)) this.#violate('published is terminal')
  }

  /** Whether a renewal could change anything. */
  mayRenew(world: World, n: number): boolean {
    const { unsent, others } = heldBy(world, n)
    return [...unsent, ...others].some(({ seq }) => (world.table[seq]?.left ?? LEASE) < LEASE)
  }

  renew(world: World, n: number): void {
    if (!this.#keeps('a send under way keeps its lease')) return
    const { unsent, others } = heldBy(world, n)
    // What is on its way may be renewed at any time: nothing is decided by how old its lease is.
    const aged = unsent.filter(({ left }) => isAged(left, LEASE))
    const renewed = renew(world.table, [...aged, ...others], LEASE)
    const isRenewed = this.#keeps('a renewal is for one token')
      ? (held: Held) => renewed.includes(held)
      : ({ seq }: Held) => renewed.some((lease) => lease.seq === seq)
    for (const held of aged.filter(isRenewed)) held.left = LEASE
  }

  crash(world: World, n: number): void {
    world.excused = true
    const token = newToken(world)
    for (const transaction of world.open.filter(({ by }) => by === n)) {
      transaction.by = null
      transaction.saved = []
    }
    world.strays.push(...world.processes[n]!.outcomes)
    for (const send of world.sends.filter(({ by }) => by === n)) {
      send.by = null
      send.turnedAway = []
    }
    world.sends = world.sends.filter((send) => send.by !== null || !this.isOver(send))
    world.processes[n] = newProcess(token)
  }

  passTime(world: World): void {
    const leases = world.table.map((row) => row?.left)
    tick(world)
    if (!this.#keeps('leases end')) {
      for (const [seq, row] of world.table.entries()) if (row) row.left = leases[seq]!
    }
    for (const [n, { frozen }] of world.processes.entries()) if (!frozen) this.renew(world, n)
  }

  isScheduled(seq: number): boolean {
    return this.#setting.scheduled.includes(seq)
  }

  keyOf(seq: number): string {
    return this.#keys[seq]!
  }

  keysOf(leases: readonly Lease[]): string[] {
    return [...new Set(leases.map(({ seq }) => this.keyOf(seq)))]
  }

  #violate(property: Property): void {
    const { lookFor = property } = this.#setting
    if (lookFor === property) throw new Violation(property)
  }

  #keeps(rule: Rule): boolean {
    return this.#setting.without !== rule
  }

  get #keepsSets(): boolean {
    return this.#keeps('what an event follows is a set')
  }

  /** Those of its key that were saved with it, or are visible to its save. */
  #earlierOf(seq: number, table: Table): number[] {
    return table.flatMap((row, other) =>
      row?.key === this.keyOf(seq) && other < seq ? [other] : [],
    )
  }

  #eventsOf(u: number): NewRow[] {
    const first = this.#setting.units.slice(0, u).flat().length
    return this.#setting.units[u]!.map((_, i) => {
      const seq = first + i
      const dueIn = this.isScheduled(seq) ? LATER : undefined
      return { seq, key: this.keyOf(seq), dueIn }
    })
  }

  #unitOf(seq: number): number {
    return this.#setting.units.findIndex((_, u) => this.#eventsOf(u).some((e) => e.seq === seq))
  }
}

function leaseOf({ seq, token }: Lease): Lease {
  return { seq, token }
}
