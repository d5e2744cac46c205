// The model of the protocol works on a table of its own (test/tools/model/table.ts). Here the same commands, drawn by
// fast-check, go to that table and to Postgres, and both have to hold the same rows and give the same answers.
// A tick is an hour, and time passes in Postgres by moving its leases into the past; what is left of them is
// kept to whole hours, so that the few milliseconds of the test itself do not decide which lease ended first.
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { prepareEvent } from '../../src/event/prepare.ts'
import { databaseOf } from '../../src/drivers/database-of.ts'
import type { Executor } from '../../src/drivers/driver.ts'
import type { Store } from '../../src/store/outbox/outbox-store.ts'
import {
  claim,
  makeDue,
  mayCancel,
  type NewRow,
  passTime,
  renew,
  save,
  recordFailed,
  recordPublished,
  type Table,
} from '../tools/model/table.ts'
import { useFixture } from '../support/fixture.ts'
import { lenientRules, newEvent } from '../support/doubles/sample-events.ts'

const HOUR = 3_600_000
const fixture = useFixture()
const seed = Number(process.env['SEED'] ?? 1)
const EVENTS = 8

/** Small numbers that stand for tokens, and the same as Postgres knows them. */
const tokens = Array.from({ length: 6 }, () => randomUUID())
const token = fc.nat(tokens.length - 1)
const seqs = fc.uniqueArray(fc.nat(EVENTS - 1), { minLength: 1, maxLength: 4 })
/** Mostly with the token that the row has: null. */
const leaseToken = fc.option(token, { freq: 1 })
const leases = fc.uniqueArray(fc.record({ seq: fc.nat(EVENTS - 1), token: leaseToken }), {
  selector: ({ seq }) => seq,
  minLength: 1,
  maxLength: 4,
})
const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('save' as const),
      /** With the ticks until it is due, if it is scheduled. */
      events: fc.array(
        fc.tuple(fc.constantFrom('x', 'y'), fc.option(fc.nat(2), { nil: undefined, freq: 3 })),
        { minLength: 1, maxLength: 3 },
      ),
      token,
      ticks: fc.constantFrom(0, 2, 4),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('claim' as const),
      limit: fc.integer({ min: 1, max: 5 }),
      token,
      ticks: fc.constantFrom(2, 4),
      locked: fc.uniqueArray(fc.nat(EVENTS - 1), { maxLength: 2 }),
      /** Of what is due, or from the head of this aggregate's lane. */
      key: fc.option(fc.constantFrom('x', 'y')),
    }),
  },
  fc.record({ kind: fc.constant('renew' as const), leases, ticks: fc.constantFrom(2, 4) }),
  fc.record({ kind: fc.constant('published' as const), seqs }),
  fc.record({ kind: fc.constant('cancel' as const), seq: fc.nat(EVENTS - 1) }),
  fc.record({ kind: fc.constant('look' as const), locked: fc.option(fc.nat(EVENTS - 1)) }),
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('failed' as const),
      leases,
      status: fc.constantFrom('failed' as const, 'dead_letter' as const, null),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('time passes' as const) }) },
)
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never

class Pair {
  readonly #table: Table = []
  readonly #ids: string[] = []
  readonly #lanes = new Map<string, number>()
  readonly #begun = new Date()
  readonly #store: Store<Executor>
  readonly #rules: { ordersClaims: boolean; fencesFailures: boolean; deadLettersHold: boolean }

  constructor(deadLettersHold: boolean) {
    this.#rules = { ordersClaims: true, fencesFailures: true, deadLettersHold }
    const onDeadLetter = deadLettersHold ? 'hold' : 'continue'
    this.#store = fixture.store({ onDeadLetter, threshold: '5m', publishTimeout: '10s' })
  }

  /** What the model answers, and what Postgres does. */
  async run(given: Command): Promise<{ model: unknown; postgres: unknown }> {
    switch (given.kind) {
      case 'save':
        return await this.#save(given)
      case 'claim':
        return await this.#claim(given)
      case 'renew': {
        const known = this.#resolve(given.leases)
        const renewed = await this.#store.renew(known.map(this.#toRef), given.ticks * HOUR)
        const held = renew(this.#table, known, given.ticks).map(this.#toRef)
        return {
          model: new Map(held.map((ref) => [ref.id, ref.token])),
          postgres: renewed,
        }
      }
      case 'published': {
        const known = given.seqs.filter((seq) => this.#table[seq])
        const news = await this.#store.recordPublished(known.map((seq) => this.#ids[seq]!))
        const published = recordPublished(this.#table, known).map((seq) => this.#ids[seq]!)
        return { model: new Set(published), postgres: news }
      }
      case 'failed': {
        const { status } = given
        const known = this.#resolve(given.leases)
        const failures = known.map((lease) => {
          const asItWas = { counts: false, delayMs: 0, error: null, copyId: null, copyLane: null }
          return { ...asItWas, ...this.#toRef(lease), status }
        })
        const recorded = await this.#store.recordFailed(failures)
        const asked = known.map((lease) => ({ ...lease, status }))
        const held = recordFailed(this.#table, asked, this.#rules).map(this.#toRef)
        return { model: new Map(held.map((ref) => [ref.id, ref.token])), postgres: recorded }
      }
      case 'cancel': {
        const { seq } = given
        const isCancelled = mayCancel(this.#table[seq], 'by claim')
        if (isCancelled) this.#table[seq] = null
        const id = this.#ids[seq] ?? randomUUID()
        return { model: isCancelled, postgres: await this.#store.cancel(id) }
      }
      case 'look': {
        const locked = given.locked !== null && this.#table[given.locked] ? [given.locked] : []
        makeDue(this.#table, locked)
        await this.#whileLocked(locked, () => this.#store.dueTopics())
        return { model: null, postgres: null }
      }
      case 'time passes':
        passTime(this.#table)
        await fixture.sql`update outbox set available_at = available_at - interval '1 hour',
          deliver_at = deliver_at - interval '1 hour'`
        return { model: null, postgres: null }
    }
  }

  #resolve(given: readonly { seq: number; token: number | null }[]) {
    return given.flatMap(({ seq, token: name }) => {
      const row = this.#table[seq]
      return row ? [{ seq, token: name ?? row.token ?? 0 }] : []
    })
  }

  readonly #toRef = ({ seq, token: name }: { seq: number; token: number }) => {
    return { id: this.#ids[seq]!, token: tokens[name]! }
  }

  async #save({ events: given, token: name, ticks }: Extract<Command, { kind: 'save' }>) {
    const first = this.#table.length
    const events = given.slice(0, EVENTS - first).map(([key, dueIn], n): NewRow => {
      const seq = first + n
      return { seq, key: dueIn === undefined ? key : `${key} ${seq}`, dueIn }
    })
    if (events.length === 0) return { model: null, postgres: null }
    const prepared = events.map(({ dueIn }, n) => {
      const schedule = dueIn === undefined ? {} : { deliverAfter: dueIn * HOUR }
      return prepareEvent(newEvent({ aggregateId: given[n]![0], ...schedule }), lenientRules)
    })
    this.#ids.push(...prepared.map(({ id }) => id))
    for (const [n, { lane }] of prepared.entries()) this.#lanes.set(events[n]!.key, lane)
    const lease = { token: tokens[name]!, workerId: 'test', ms: ticks * HOUR }
    const saved = await this.#store.save(databaseOf(fixture.db), prepared, lease)
    // The table counts from its last truncation on; the model from 0.
    const offset = saved[0]!.event.seq - first
    const follows = saved.map((event) => {
      if (event.follows === 'unknown') return event.follows
      return event.follows.map((seq) => seq - offset).toSorted((a, b) => a - b)
    })
    return {
      model: save(this.#table, events, { token: name, ticks }, this.#rules),
      postgres: follows,
    }
  }

  async #claim({ limit, token: name, ticks, locked, key }: Extract<Command, { kind: 'claim' }>) {
    const lease = { token: tokens[name]!, workerId: 'test', ms: ticks * HOUR }
    const lanes = this.#lanes.get(key ?? '')
    if (key === null) makeDue(this.#table)
    const from =
      key === null
        ? { topics: (await this.#store.dueTopics()).topics }
        : { lanes: lanes === undefined ? [] : [lanes], onlyTopics: null, exceptTopics: [] }
    await this.#keepToTicks()
    const known = locked.filter((seq) => this.#table[seq])
    const { events } = await this.#whileLocked(known, () =>
      this.#store.claim({ lease, limit, from }),
    )
    const request = { limit, token: name, ticks, ...(key === null ? {} : { key }) }
    return {
      model: claim(this.#table, request, known, this.#rules),
      postgres: events.map(({ id }) => this.#ids.indexOf(id)),
    }
  }

  async #whileLocked<T>(locked: readonly number[], action: () => Promise<T>): Promise<T> {
    return (await fixture.sql.begin(async (sql) => {
      await sql`select 1 from outbox where id = any(${locked.map((seq) => this.#ids[seq]!)}) for update`
      return await action()
    })) as T
  }

  async #keepToTicks() {
    await fixture.sql`update outbox set available_at = ${this.#begun}::timestamptz
      + round(extract(epoch from available_at - ${this.#begun}::timestamptz) / 3600) * interval '1 hour'`
  }

  async rows() {
    await this.#keepToTicks()
    const rows = await fixture.sql<VisibleRow[]>`
      select status, lease_token as token, deliver_at is not null and worker_id is not null as "isTaken",
        (extract(epoch from available_at - ${this.#begun}::timestamptz) / 3600)::int as left
      from outbox order by seq`
    const visible = ({ left, ...row }: VisibleRow) =>
      ['scheduled', 'pending', 'failed'].includes(row.status) ? { ...row, left } : row
    return {
      model: this.#table.flatMap((row) => {
        if (!row) return []
        const { status, token: name, left, isTaken = false } = row
        return [visible({ status, token: name === null ? null : tokens[name]!, isTaken, left })]
      }),
      postgres: rows.map((row) => visible({ ...row })),
    }
  }
}

interface VisibleRow {
  readonly status: string
  readonly token: string | null
  readonly isTaken: boolean
  readonly left: number
}

it.each([
  ['continue', false],
  ['hold', true],
])(
  'the table of the model does what Postgres does (dead letters %s)',
  { timeout: 180_000 },
  async (_, hold) => {
    let [claimed, cancelled] = [0, 0]
    const property = fc.asyncProperty(
      fc.array(command, { minLength: 4, maxLength: 25, size: 'max' }),
      async (commands) => {
        await fixture.sql`truncate outbox`
        const pair = new Pair(hold)
        for (const one of commands) {
          const { model, postgres } = await pair.run(one)
          expect(postgres).toEqual(model)
          if (one.kind === 'claim') claimed += (model as number[]).length
          if (one.kind === 'cancel' && model) cancelled += 1
          const rows = await pair.rows()
          expect(rows.postgres).toEqual(rows.model)
        }
      },
    )
    await fc.assert(property, { seed, numRuns: 250, interruptAfterTimeLimit: 120_000 })
    // Or it proves little.
    expect(claimed).toBeGreaterThan(100)
    expect(cancelled).toBeGreaterThan(10)
  },
)
