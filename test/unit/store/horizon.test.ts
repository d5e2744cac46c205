import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Horizon } from '../../../src/store/outbox/horizon.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND

/** A table of one topic, with a clock and transactions that take their time. */
class World {
  readonly horizon = new Horizon()
  now = 1_000_000 * SECOND
  serverSince = 500_000 * SECOND
  nextId = 1n
  /** A snapshot lists running transactions only below the id after this one. */
  newestEnded = 0n
  /** When the events of each running transaction are due. */
  readonly running = new Map<bigint, number[]>()
  unfinished: number[] = []
  firstScheduled: number | null = null
  wentBack = 0

  begin(): bigint {
    this.running.set(this.nextId, [])
    return this.nextId++
  }

  save(id: bigint): void {
    this.running.get(id)!.push(this.now)
  }

  commit(id: bigint): void {
    this.unfinished.push(...this.running.get(id)!)
    this.running.delete(id)
    this.#ended(id)
  }

  #ended(id: bigint): void {
    if (id > this.newestEnded) this.newestEnded = id
  }

  /** Returns what a claim would find after it. */
  look(): number[] {
    const since = this.horizon.claimsFrom('orders')
    const seen = this.unfinished.filter((at) => at >= since)
    this.horizon.looked(['orders'])
    const { at, beyond } = this.horizon.nextMark
    const running = new Set([...this.running.keys()].filter((id) => id <= this.newestEnded))
    const ownId = this.now >= at && this.newestEnded > beyond ? this.nextId++ : null
    if (ownId !== null) this.#ended(ownId)
    const first = seen.length > 0 ? Math.min(...seen) : null
    const goesBack = this.horizon.learn({
      now: this.now,
      serverSince: this.serverSince,
      running,
      ownId,
      firstByTopic: new Map([['orders', first]]),
      firstScheduled: this.firstScheduled,
    })
    if (goesBack) this.wentBack += 1
    return goesBack ? this.look() : this.visible()
  }

  /** Meanwhile others have written something. */
  pass(ms: number): void {
    this.now += ms
    this.commit(this.begin())
  }

  visible(): number[] {
    const since = this.horizon.claimsFrom('orders')
    return this.unfinished.filter((at) => at >= since)
  }
}

describe('the horizon', () => {
  it('looks at everything first, and then from the look before on', () => {
    const world = new World()
    world.look()
    expect(world.horizon.claimsFrom('orders')).toBe(Number.NEGATIVE_INFINITY)
    const first = world.now
    world.pass(MINUTE)
    world.look()
    expect(world.horizon.claimsFrom('orders')).toBe(first - SECOND)
    expect(world.horizon.claimsFrom('another')).toBe(Number.NEGATIVE_INFINITY)
  })

  it('reads what is scheduled from the first one on, and no further than from the look before', () => {
    const world = new World()
    world.firstScheduled = world.now + 3 * SECOND
    world.look()
    expect(world.horizon.scheduledSince).toBe(Number.NEGATIVE_INFINITY)
    const first = world.now
    world.pass(MINUTE)
    world.look()
    expect(world.horizon.scheduledSince).toBe(first - SECOND)
    world.pass(MINUTE)
    world.look()
    expect(world.horizon.scheduledSince).toBe(world.firstScheduled - 1)
    world.firstScheduled = null
    world.pass(MINUTE)
    world.look()
    expect(world.horizon.scheduledSince).toBe(world.now - MINUTE - SECOND)
    world.now -= MINUTE
    world.look()
    expect(world.horizon.scheduledSince).toBe(Number.NEGATIVE_INFINITY)
  })

  it('goes back for what is scheduled by a transaction that it had passed', () => {
    const world = new World()
    const id = world.begin()
    world.look()
    for (let n = 0; n < 4; n += 1) {
      world.pass(MINUTE)
      world.look()
    }
    const passed = world.horizon.scheduledSince
    world.commit(id)
    world.look()
    expect(world.wentBack).toBe(1)
    expect(world.horizon.scheduledSince).toBe(passed)
  })

  it('stays where it is for two seconds', () => {
    const world = new World()
    const begun = world.now
    const since: number[] = []
    for (let n = 0; n < 10; n += 1) {
      world.look()
      since.push((world.horizon.claimsFrom('orders') - begun) / SECOND)
      world.pass(SECOND / 2)
    }
    const first = Array<number>(4).fill(Number.NEGATIVE_INFINITY)
    expect(since).toEqual([...first, -1, -1, -1, -1, 1, 1])
  })

  it('lets a claim begin where the last one ended, until the next look', () => {
    const world = new World()
    world.look()
    world.horizon.claimedUpTo('orders', world.now, world.horizon.looks)
    expect(world.horizon.claimsFrom('orders')).toBe(world.now - 1)
    expect(world.horizon.since.get('orders')).toBe(Number.NEGATIVE_INFINITY)
    world.look()
    expect(world.horizon.claimsFrom('orders')).toBe(Number.NEGATIVE_INFINITY)
  })

  it('does not let a claim begin where one ended that a look has overtaken', () => {
    const world = new World()
    world.look()
    const { looks } = world.horizon
    world.look()
    world.horizon.claimedUpTo('orders', world.now, looks)
    expect(world.horizon.claimsFrom('orders')).toBe(Number.NEGATIVE_INFINITY)
  })

  it('forgets where claims ended, and knows new topics, after a look from which it does not learn', () => {
    const world = new World()
    world.look()
    world.horizon.claimedUpTo('orders', world.now, world.horizon.looks)
    world.horizon.looked(['orders', 'invoices'])
    expect(world.horizon.claimsFrom('orders')).toBe(Number.NEGATIVE_INFINITY)
    expect(world.horizon.since.get('invoices')).toBe(Number.NEGATIVE_INFINITY)
  })

  it('does not go back for transactions that come and go', () => {
    const world = new World()
    for (let n = 0; n < 100; n += 1) {
      const id = world.begin()
      world.pass(SECOND)
      world.look()
      world.commit(id)
      world.look()
      expect(world.wentBack).toBe(0)
    }
  })

  it('stays at the oldest event that is unfinished', () => {
    const world = new World()
    const id = world.begin()
    world.save(id)
    world.commit(id)
    const [due] = world.unfinished
    for (let n = 0; n < 5; n += 1) {
      world.pass(MINUTE)
      world.look()
    }
    expect(world.horizon.claimsFrom('orders')).toBe(due! - 1)
    world.unfinished = []
    world.pass(MINUTE)
    world.look()
    expect(world.horizon.claimsFrom('orders')).toBeGreaterThan(due!)
  })

  it('moves on while an old transaction is running, and goes back for what that saved', () => {
    const world = new World()
    world.look()
    const old = world.begin()
    world.save(old)
    const saved = world.now
    for (let n = 0; n < 5; n += 1) {
      world.pass(MINUTE)
      world.look()
    }
    expect(world.horizon.claimsFrom('orders')).toBeGreaterThan(saved + MINUTE)
    world.commit(old)
    expect(world.look()).toEqual([saved])
    world.look()
    expect(world.horizon.claimsFrom('orders')).toBe(saved - 1)
  })

  it('finds what the newest transaction saved, though no snapshot lists that one while it runs', () => {
    const world = new World()
    world.pass(MINUTE)
    world.look()
    const newest = world.begin()
    world.save(newest)
    for (let n = 0; n < 3; n += 1) {
      world.now += MINUTE
      world.look()
    }
    world.commit(newest)
    expect(world.look()).toHaveLength(1)
  })

  it('takes an id only if others do, but for one whenever it begins anew', () => {
    const world = new World()
    for (let n = 0; n < 100; n += 1) {
      world.now += MINUTE
      world.look()
    }
    expect(world.nextId).toBeLessThan(12n)
  })

  it('begins anew after ten minutes, and when the clock was set back', () => {
    const world = new World()
    world.look()
    world.pass(MINUTE)
    world.look()
    world.now -= SECOND
    world.look()
    expect(world.horizon.claimsFrom('orders')).toBe(Number.NEGATIVE_INFINITY)
    for (let n = 0; n < 2; n += 1) {
      world.pass(MINUTE)
      world.look()
    }
    expect(world.horizon.claimsFrom('orders')).toBeGreaterThan(0)
    world.pass(10 * MINUTE)
    world.look()
    expect(world.horizon.claimsFrom('orders')).toBe(Number.NEGATIVE_INFINITY)
  })

  it('begins anew on another server, where an event may be due as of long ago', () => {
    const world = new World()
    for (let n = 0; n < 3; n += 1) {
      world.look()
      world.pass(MINUTE)
    }
    const longAgo = world.now - 5 * MINUTE
    expect(world.horizon.claimsFrom('orders')).toBeGreaterThan(longAgo)
    world.serverSince += SECOND
    world.unfinished = [longAgo]
    expect(world.look()).toEqual([longAgo])
  })

  it('forgets topics that have nothing left when it knows too many', () => {
    const world = new World()
    const topics = Array.from({ length: 1_500 }, (_, n) => [`topic ${n}`, null] as const)
    const learn = (firstByTopic: ReadonlyMap<string, number | null>) =>
      world.horizon.learn({
        now: world.now,
        serverSince: world.serverSince,
        running: new Set(),
        ownId: 1n,
        firstByTopic,
        firstScheduled: null,
      })
    learn(new Map<string, number | null>(topics))
    learn(new Map([...topics, ['waits', world.now]]))
    expect(world.horizon.since.size).toBeLessThanOrEqual(1_001)
    expect(world.horizon.since.has('waits')).toBe(true)
  })

  it('never leaves out anything for longer than one look, whatever transactions do', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('begin' as const) }),
      fc.record({ kind: fc.constant('save' as const), which: fc.nat(9) }),
      fc.record({ kind: fc.constant('commit' as const), which: fc.nat(9) }),
      fc.record({ kind: fc.constant('finish' as const), which: fc.nat(9) }),
      fc.record({ kind: fc.constant('time passes' as const), ms: fc.nat(2 * MINUTE) }),
      fc.record({ kind: fc.constant('look' as const) }),
    )
    let looks = 0
    const property = fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
      const world = new World()
      for (const one of steps) {
        const ids = [...world.running.keys()]
        switch (one.kind) {
          case 'begin':
            world.begin()
            break
          case 'save':
            if (ids.length > 0) world.save(ids[one.which % ids.length]!)
            break
          case 'commit':
            if (ids.length > 0) world.commit(ids[one.which % ids.length]!)
            break
          case 'finish':
            world.unfinished.splice(one.which % Math.max(1, world.unfinished.length), 1)
            break
          case 'time passes':
            world.now += one.ms
            break
          case 'look':
            looks += 1
            if (world.look().length < world.unfinished.length) return false
        }
      }
      return true
    })
    fc.assert(property, { numRuns: 2_000 })
    expect(looks).toBeGreaterThan(1_000)
  })
})
