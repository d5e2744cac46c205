// The checks that are exported for drivers from outside: each driver of ours passes them, and one that breaks a rule does not.
import { describe, expect, it } from 'vitest'
import { driverChecks, type DriverUnderTest } from '../../src/drivers/conformance.ts'
import { databaseOf } from '../../src/drivers/database-of.ts'
import type { Database, OpenTransaction } from '../../src/index.ts'
import { ALL_DRIVERS, SERVED_DRIVERS } from '../support/drivers.ts'
import { describeEach } from '../support/fixture.ts'

describeEach(ALL_DRIVERS, (fixture) => {
  const { query, nest } = fixture.driver
  const tested = (): DriverUnderTest<unknown> => ({ db: databaseOf(fixture.db), query, nest })

  for (const { name, run } of driverChecks) {
    it(name, async () => {
      await expect(run(tested())).resolves.toBeUndefined()
    })
  }
})

type Broken = (db: Database<unknown>) => Partial<Database<unknown>>
type Open = OpenTransaction<unknown>

const changing =
  (change: (open: Open) => Partial<Open>): Broken =>
  (db) => ({
    begin: (work, settings) => db.begin((open) => work({ ...open, ...change(open) }), settings),
  })

/** A rule that is broken, and the checks that notice. */
const BROKEN: readonly [string, Broken, readonly RegExp[]][] = [
  [
    'takes failures for successes',
    (db) => ({
      begin: (work, settings) => db.begin(work, settings).catch(() => undefined as never),
    }),
    [
      /rolls back when the work fails/,
      /rejects when Postgres refuses COMMIT/,
      /resolves only if it committed/,
    ],
  ],
  [
    'commits what failed',
    (db) => ({
      begin: async (work, settings) => {
        let failure: unknown
        const result = await db.begin(
          (open) => work(open).catch((error) => (failure = error) as never),
          settings,
        )
        if (failure) throw failure
        return result
      },
    }),
    [/rolls back when the work fails/],
  ],
  [
    'forgets the result and the settings',
    (db) => ({ begin: (work) => db.begin(work).then(() => undefined as never) }),
    [/commits what the work did/, /begins with the settings/],
  ],
  [
    'has no savepoints',
    changing((open) => ({ savepoint: (work) => work(open) })),
    [/undoes a savepoint alone/, /lets a statement run after a failed one/],
  ],
  [
    'announces nothing',
    changing((open) => ({ guarded: () => open.tx })),
    [/announces each use/, /hands the client's own way/],
  ],
  [
    'hands out a transaction without a guard',
    (db) => ({
      begin: (work, settings) =>
        db.begin((open) => {
          const query = async (text: string) => await open.query({ text, values: [] })
          return work({ ...open, guarded: () => ({ query }) })
        }, settings),
    }),
    [/refuses statements that would end/, /refuses the transaction when it is over/],
  ],
  [
    'loses codes and parameters',
    (db) => ({
      query: async ({ text, values }) =>
        await db.query({ text, values: values.map(() => null) }).catch(() => {
          throw new Error('failed')
        }),
    }),
    [/takes parameters/, /keeps Postgres's code/],
  ],
  [
    'joins anything',
    (db) => ({ join: (tx) => (tx === null ? db.join(tx) : (db as unknown as Open)) }),
    [/joins an open transaction/],
  ],
]

describe('a driver that breaks a rule', () => {
  const onNodePostgres = SERVED_DRIVERS[3]!
  describeEach([onNodePostgres], (fixture) => {
    const { query, nest } = fixture.driver

    it.each(BROKEN)('that %s is noticed', async (_, broken, noticing) => {
      const db = databaseOf(fixture.db)
      const tested: DriverUnderTest<unknown> = { db: { ...db, ...broken(db) }, query, nest }
      for (const pattern of noticing) {
        const { run } = driverChecks.find(({ name }) => pattern.test(name))!
        await expect(run(tested)).rejects.toThrow(Error)
      }
    })

    it('is noticed by each of the checks', () => {
      const noticed = BROKEN.flatMap(([, , noticing]) => noticing)
      const others = driverChecks.filter(({ name }) => !noticed.some((one) => one.test(name)))
      expect(others).toEqual([])
    })
  })
})
