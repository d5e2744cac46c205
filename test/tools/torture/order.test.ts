// Which order the oracle asks for, and that it asks for no more than is owed.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { countOutOfOrder, type Placed } from './order.ts'

type Unit = Pick<Placed, 'xid' | 'snapshot' | 'locked'>

/** One unit after another saves, so that xids rise; a snapshot says what had committed when a unit began. */
const unit = (xid: number, snapshot: string, locked = false): Unit => ({ xid, snapshot, locked })

let numbers = 0
const emit = (by: Unit) => ({ ...by, account: 'open-1', n: (numbers += 1) })

const countIn = (...arrivals: Omit<Placed, 'position'>[]) =>
  countOutOfOrder(arrivals.map((event, position) => ({ ...event, position })))

it('lets the events of units that overlapped arrive either way', () => {
  const a = emit(unit(10, '10:10:'))
  const b = emit(unit(11, '10:11:10'))
  expect(countIn(a, b)).toBe(0)
  expect(countIn(b, a)).toBe(0)
})

it('asks for the order of two units of which the second began when the first had committed', () => {
  const a = emit(unit(10, '10:10:'))
  const b = emit(unit(11, '11:11:'))
  expect(countIn(a, b)).toBe(0)
  expect(countIn(b, a)).toBe(1)
})

it('looks past a unit that is still running for one that has committed behind it', () => {
  const running = emit(unit(10, '10:10:'))
  const committed = emit(unit(11, '10:11:10'))
  const later = emit(unit(12, '10:12:10'))
  expect(countIn(committed, later, running)).toBe(0)
  expect(countIn(running, later, committed)).toBe(1)
})

it('asks nothing of an event for one that committed after its unit had begun', () => {
  const early = emit(unit(12, '10:10:'))
  const a = emit(unit(10, '10:10:'))
  const b = emit(unit(11, '10:10:'))
  expect(countIn(early, a, b)).toBe(0)
})

it('asks units that lock the account for the order of their locks, whenever they began', () => {
  const a = emit(unit(10, '10:10:', true))
  const b = emit(unit(11, '10:10:', true))
  expect(countIn(a, b)).toBe(0)
  expect(countIn(b, a)).toBe(1)
})

it('keeps two units that lock in order, with one between them that does not', () => {
  const careful = emit(unit(10, '10:10:', true))
  const careless = emit(unit(11, '10:11:10'))
  const carefulToo = emit(unit(12, '10:10:', true))
  expect(countIn(careful, careless, carefulToo)).toBe(0)
  expect(countIn(careful, carefulToo, careless)).toBe(0)
  expect(countIn(careless, careful, carefulToo)).toBe(0)
  expect(countIn(careless, carefulToo, careful)).toBe(1)
})

it('asks for the events of one unit in the order of emit, locked or not', () => {
  for (const locked of [true, false]) {
    const own = unit(10, '10:10:', locked)
    const [a, b, c] = [emit(own), emit(own), emit(own)]
    expect(countIn(a, b, c)).toBe(0)
    expect(countIn(b, c, a)).toBe(2)
  }
})

it('counts an event once that came before several', () => {
  const [a, b] = [emit(unit(10, '10:10:')), emit(unit(11, '10:11:10'))]
  const c = emit(unit(12, '12:12:'))
  expect(countIn(c, a, b)).toBe(1)
})

it('asks nothing across accounts', () => {
  const a = emit(unit(10, '10:10:'))
  const b = { ...emit(unit(11, '11:11:')), account: 'open-2' }
  expect(countIn(b, a)).toBe(0)
})

// The same rules, pair by pair.
function countSlowly(events: readonly Placed[]): number {
  const follows = (b: Placed, a: Placed) => {
    if (a.account !== b.account) return false
    if (a.xid === b.xid) return a.n < b.n
    const [xmin, xmax, running] = b.snapshot.split(':') as [string, string, string]
    const isOver = a.xid < Number(xmin) || !running.split(',').includes(String(a.xid))
    return (a.xid < Number(xmax) && isOver) || (a.locked && b.locked && a.n < b.n)
  }
  const isEarly = (b: Placed) => events.some((a) => a.position > b.position && follows(b, a))
  return events.filter(isEarly).length
}

const LATEST_XID = 12
const anyUnit = fc
  .record({
    xid: fc.integer({ min: 1, max: LATEST_XID }),
    account: fc.constantFrom('open-1', 'open-2'),
    locked: fc.boolean(),
    // How many of the transactions before it had begun, and which of those were running.
    behind: fc.nat(3),
    running: fc.array(fc.boolean(), { minLength: LATEST_XID, maxLength: LATEST_XID }),
    events: fc.integer({ min: 1, max: 2 }),
  })
  .map(({ behind, running, ...rest }) => {
    const xmax = Math.max(1, rest.xid - behind)
    const xip = running.flatMap((isRunning, n) => (isRunning && n > 0 && n < xmax ? [n] : []))
    return { ...rest, snapshot: `${xip[0] ?? xmax}:${xmax}:${xip.join()}` }
  })

it('agrees with a look at every pair', () => {
  const anyHistory = fc
    .uniqueArray(anyUnit, { selector: ({ xid }) => xid, maxLength: LATEST_XID })
    .chain((units) => {
      const events = units.flatMap(({ events: count, ...own }) =>
        Array.from({ length: count }, (_, n) => ({ ...own, n: own.xid * 10 + n })),
      )
      return fc.shuffledSubarray(events, { minLength: events.length })
    })
    .map((arrivals) => arrivals.map((event, position) => ({ ...event, position })))
  fc.assert(
    fc.property(anyHistory, (events) => {
      expect(countOutOfOrder(events)).toBe(countSlowly(events))
    }),
    { seed: 1, numRuns: 500 },
  )
})
