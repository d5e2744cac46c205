// Everything that can happen next in a small world. Who comes first, what the broker and the network do, who
// dies or stands still: whatever chance decides is a move of its own.
import { Steps } from './steps.ts'
import { isPutOff, isUnfinished } from './table.ts'
import {
  isFollowed,
  LEASE,
  type Outcome,
  type Send,
  type Setting,
  type Transaction,
  type World,
} from './world.ts'

export interface Move {
  readonly name: string
  /** How many of the faults it takes; with 0 it is part of a world in which nothing goes wrong. */
  readonly faults: 0 | 1
  readonly make: (world: World) => void
}

type AddMove = (name: string, make: Move['make'], faults?: Move['faults']) => void

/** Sends of the living that are under way at once: a bound of the exploration, not of the protocol. */
const MOST_SENDS = 3

export class Moves {
  readonly #setting: Setting
  readonly #steps: Steps

  constructor(setting: Setting) {
    this.#setting = setting
    this.#steps = new Steps(setting)
  }

  from(world: World): Move[] {
    const steps = this.#steps
    const moves: Move[] = []
    const add: AddMove = (name, make, faults = 0) => {
      if (faults <= world.faultsLeft) moves.push({ name, faults, make })
    }
    for (const [n, { frozen }] of world.processes.entries()) {
      if (!frozen) this.#addMovesOf(n, world, add)
      this.#addFaultsOf(n, frozen, add)
    }
    for (const [t, transaction] of world.open.entries()) this.#addMovesOfOpen(t, transaction, add)
    for (const [s, send] of world.sends.entries()) this.#addMovesOfSend(s, send, world, add)
    for (const seq of this.#setting.scheduled) this.#addMovesOfScheduled(seq, world, add)
    for (const [i, { kind, seq }] of world.strays.entries()) {
      add(`a record of the dead arrives: event ${seq} ${kind}`, (next) => {
        steps.record(next, next.strays.splice(i, 1))
      })
    }
    if (this.#isIdle(world)) add('time passes', (next) => steps.passTime(next))
    return moves
  }

  /** Whether every event that was committed is where it ends. */
  isDone({ table }: World): boolean {
    const { poison, deadLettersHold } = this.#setting
    const heldKey = poison !== null && deadLettersHold ? this.#steps.keyOf(poison) : null
    return table.every((row, seq) => {
      if (row === null || row.status === 'published') return true
      if (row.status === 'dead_letter') return seq === poison
      const isBehind = row.key === heldKey && seq > poison!
      return isBehind && table[poison!]?.status === 'dead_letter'
    })
  }

  #addMovesOf(n: number, world: World, add: AddMove): void {
    const steps = this.#steps
    const who = `process ${n}`
    const { acked, confirming, claimed, outcomes } = world.processes[n]!
    for (const u of world.units.keys()) if (this.#mayBegin(n, u, world)) this.#addUnit(n, u, add)
    for (const [i, { saved }] of confirming.entries()) {
      const learns = `${who} learns of COMMIT of [${saved.map(({ seq }) => seq).join(' ')}]`
      add(learns, (next) => steps.accept(next, n, i, false))
      if (acked.some((seq) => isFollowed(seq, saved))) {
        add(`${learns}, having forgotten acks`, (next) => steps.accept(next, n, i, true))
      }
    }
    const hasRoom = world.sends.filter(({ by }) => by !== null).length < MOST_SENDS
    if (hasRoom && steps.ready(world, n).length > 0) {
      add(`${who} sends`, (next) => steps.sendWaiting(next, n, false))
      add(`${who} may not send`, (next) => steps.sendWaiting(next, n, true), 1)
    }
    if (hasRoom && claimed) {
      add(`${who} sends what it claimed`, (next) => steps.sendClaimed(next, n, false))
      add(`${who} may not send what it claimed`, (next) => steps.sendClaimed(next, n, true), 1)
    }
    if (this.#mayClaim(world, n)) this.#addClaims(n, world, add)
    if (outcomes.some(isAck)) {
      add(`${who} records acks`, (next) => this.#recordSome(next, n, isAck))
    }
    if (!outcomes.every(isAck)) {
      add(`${who} records failures`, (next) => this.#recordSome(next, n, (one) => !isAck(one)))
    }
    if (steps.mayRenew(world, n)) add(`${who} renews`, (next) => steps.renew(next, n))
  }

  #addFaultsOf(n: number, frozen: boolean, add: AddMove): void {
    add(`process ${n} dies`, (next) => this.#steps.crash(next, n), 1)
    const setFrozen = (next: World) => {
      next.excused = true
      next.processes[n]!.frozen = !frozen
    }
    if (frozen) add(`process ${n} thaws`, setFrozen)
    else add(`process ${n} freezes`, setFrozen, 1)
  }

  // Units that share an aggregate save in their order, as seq does; those that do not lock commit in any order.
  // Processes are alike, so the first unit may as well be the first one's.
  #mayBegin(n: number, u: number, { units }: World): boolean {
    if (units[u] !== 'new' || (u === 0 && n > 0)) return false
    const keys = new Set(this.#setting.units[u])
    return units.slice(0, u).every((state, other) => {
      return state !== 'new' || !this.#setting.units[other]!.some((key) => keys.has(key))
    })
  }

  #addUnit(n: number, u: number, add: AddMove): void {
    const steps = this.#steps
    if (this.#setting.unlocked.includes(u)) {
      const saves = `process ${n} saves unit ${u}`
      add(saves, (next) => steps.save(next, n, u, LEASE))
      add(`${saves}, born free`, (next) => steps.save(next, n, u, 0), 1)
      return
    }
    const commits = `process ${n} commits unit ${u}`
    const commit = (next: World, ticks: number, isConfirmed: boolean) => {
      steps.save(next, n, u, ticks)
      steps.commit(next, next.open.length - 1, isConfirmed)
    }
    const rollBack = (next: World) => {
      steps.save(next, n, u, LEASE)
      steps.rollBack(next, next.open.length - 1)
    }
    add(commits, (next) => commit(next, LEASE, true))
    add(`${commits}, born free`, (next) => commit(next, 0, true), 1)
    add(`${commits}, and never learns of it`, (next) => commit(next, LEASE, false), 1)
    add(`unit ${u} of process ${n} rolls back`, rollBack, 1)
  }

  // COMMIT may have left a process before that one stood still or died.
  #addMovesOfOpen(t: number, { by, unit, isSlow }: Transaction, add: AddMove): void {
    const steps = this.#steps
    const commits = `unit ${unit} commits`
    add(commits, (next) => steps.commit(next, t, true))
    if (by === null) return
    const unheard = `${commits}, and process ${by} never learns of it`
    add(unheard, (next) => steps.commit(next, t, false), 1)
    add(`unit ${unit} rolls back`, (next) => steps.rollBack(next, t), 1)
    if (isSlow) return
    const slowDown = (next: World) => {
      next.open[t]!.isSlow = true
    }
    add(`COMMIT of unit ${unit} is slow`, slowDown, 1)
  }

  // The transaction of a cancellation may end in either way, whatever becomes of its process.
  #addMovesOfScheduled(seq: number, world: World, add: AddMove): void {
    const steps = this.#steps
    if (world.cancelling === seq) {
      add(`event ${seq} is cancelled: COMMIT`, (next) => steps.commitCancel(next))
      add(`event ${seq} is cancelled: ROLLBACK`, (next) => {
        next.cancelling = null
      })
      return
    }
    if (world.table[seq]?.status === 'scheduled') {
      add(`event ${seq} becomes due`, (next) => steps.becomeDue(next, seq))
    }
    if (steps.mayCancel(world, seq)) {
      add(`event ${seq} is cancelled`, (next) => {
        next.cancelling = seq
      })
    }
  }

  #addMovesOfSend(s: number, send: Send, { processes }: World, add: AddMove): void {
    const steps = this.#steps
    const { by, admitted, fate, late, dropped } = send
    const events = `[${admitted.map(({ seq }) => seq).join(' ')}]`
    for (const key of steps.keysOf(admitted).filter((one) => !fate[one])) {
      const what = `${events} to ${key}`
      add(`${what} arrives`, (next) => steps.arrive(next, s, key, 'written'))
      if (by === null) continue
      add(`${what} does not arrive`, (next) => steps.arrive(next, s, key, 'not written'), 1)
      const unheard = 'written, but not acknowledged'
      add(`${what} arrives, its ack does not`, (next) => steps.arrive(next, s, key, unheard), 1)
      add(`${what} is given up, and under way`, (next) => steps.loseTrack(next, s, key), 1)
      if (admitted.filter(({ seq }) => steps.keyOf(seq) === key).length > 1) {
        const inPart = 'written in part'
        add(`${what} arrives in part`, (next) => steps.arrive(next, s, key, inPart), 1)
      }
    }
    if (by === null || processes[by]!.frozen) return
    const who = `process ${by}`
    if (steps.isOver(send)) add(`${who} hears of ${events}`, (next) => steps.answer(next, s))
    if (!late) add(`${who} waits for ${events} no longer`, (next) => steps.timeOut(next, s), 1)
    else if (!dropped) add(`${who} lets go of ${events}`, (next) => steps.drop(next, s))
  }

  #addClaims(n: number, { table }: World, add: AddMove): void {
    const steps = this.#steps
    const claims = `process ${n} claims`
    // In this world every process watches every lane, which the fallback does only for a while.
    const waiting = new Set(table.flatMap((row) => (row && isPutOff(row) ? [row.key] : [])))
    for (const key of waiting) {
      add(`${claims} from the lane of ${key}`, (next) => steps.claim(next, n, { key }))
    }
    const due = table.flatMap((row, seq) => {
      return row && isUnfinished(row) && row.left <= 0 ? [seq] : []
    })
    if (due.length === 0) return
    add(claims, (next) => steps.claim(next, n))
    if (due.length === 1) return
    add(`${claims} one event`, (next) => steps.claim(next, n, { limit: 1 }), 1)
    for (const seq of due) {
      add(`${claims} past ${seq}`, (next) => steps.claim(next, n, { locked: [seq] }), 1)
    }
  }

  #mayClaim({ processes, sends }: World, n: number): boolean {
    const { claimed, outcomes } = processes[n]!
    const isSending = sends.some(({ by, path, late }) => by === n && path === 'fallback' && !late)
    return claimed === null && !isSending && outcomes.every(({ path }) => path !== 'fallback')
  }

  #recordSome(world: World, n: number, which: (outcome: Outcome) => boolean): void {
    const process = world.processes[n]!
    const some = process.outcomes.filter(which)
    process.outcomes = process.outcomes.filter((outcome) => !which(outcome))
    this.#steps.record(world, some)
  }

  /** Whether nobody has anything to do at once. Whoever has, and is slow, is frozen. */
  #isIdle(world: World): boolean {
    return world.processes.every(({ frozen, confirming, claimed, outcomes }, n) => {
      if (frozen) return true
      const open = world.open.filter(({ by }) => by === n)
      const isCommitting = [...confirming, ...open].some(({ isSlow }) => !isSlow)
      const isBusy = isCommitting || claimed !== null || outcomes.length > 0
      return !isBusy && this.#steps.ready(world, n).length === 0
    })
  }
}

function isAck({ kind }: Outcome): boolean {
  return kind === 'published'
}
