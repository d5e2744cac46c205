// `aftercommit/driver-conformance`: what every driver has to do, as checks that any test runner can run. Drivers that are
// written outside this package run them too. Each check makes a table of its own and drops it.
import assert from 'node:assert/strict'
import type { Database, OpenTransaction, TransactionWatch } from './driver.ts'
import { sql } from './sql.ts'
import { sqlStateOf } from './sql-state.ts'

/** A driver, and how an application uses the transactions that the driver passes to it. */
export interface DriverUnderTest<TTx> {
  readonly db: Database<TTx>
  /** Runs a statement in the client's own way. */
  readonly query: (tx: TTx, text: string) => Promise<unknown>
  /** Nests in the client's own way. */
  readonly nest: (tx: TTx, work: (inner: TTx) => Promise<unknown>) => Promise<unknown>
}

export interface DriverCheck {
  /** A sentence, for the name of a test. */
  readonly name: string
  readonly run: <TTx>(tested: DriverUnderTest<TTx>) => Promise<void>
}

const TABLE = 'aftercommit_driver_check'
const refusal = new Error('refused by a check of the driver')
const noWatch = { use: () => {}, savepoint: async () => {} }

async function idsOf({ db }: DriverUnderTest<never>): Promise<number[]> {
  const rows = (await db.query(sql.raw(`select id from ${TABLE} order by id`))) as { id: unknown }[]
  return rows.map(({ id }) => Number(id))
}

const insert = (id: number) => `insert into ${TABLE} values (${id})`

function check(
  name: string,
  run: <TTx>(tested: DriverUnderTest<TTx>) => Promise<void>,
): DriverCheck {
  return {
    name,
    run: async (tested) => {
      await tested.db.query(
        sql.raw(`create table ${TABLE} (id int unique deferrable initially deferred)`),
      )
      try {
        await run(tested)
      } finally {
        await tested.db.query(sql.raw(`drop table ${TABLE}`))
      }
    },
  }
}

/** Runs the work in a transaction, with what its callback would receive. */
function guarded<TTx, T>(
  { db }: DriverUnderTest<TTx>,
  watch: TransactionWatch<TTx>,
  work: (tx: TTx, open: OpenTransaction<TTx>) => Promise<T>,
): Promise<T> {
  return db.begin(async (open) => await work(open.guarded(watch), open))
}

export const driverChecks: readonly DriverCheck[] = [
  check('takes parameters, and returns text, numbers and null', async ({ db }) => {
    const text = `é"'\\ $1 ? :name 😀`
    const [row] = await db.query(
      sql`select ${text}::text as text, ${7}::int as number, ${null}::text as none, (${true}::boolean)::text as flag`,
    )
    const { text: back, number, none, flag } = row as Record<string, unknown>
    assert.deepEqual([back, Number(number), none, flag], [text, 7, null, 'true'])
  }),

  check("keeps Postgres's code of a failed statement", async ({ db }) => {
    const failed = await db.query(sql`select * from aftercommit_nowhere`).then(
      () => null,
      (error: unknown) => error,
    )
    assert.equal(sqlStateOf(failed), '42P01')
  }),

  check('commits what the work did, and resolves with its result', async (tested) => {
    const result = await tested.db.begin(async (open) => {
      await open.query(sql.raw(insert(1)))
      return 'done'
    })
    assert.equal(result, 'done')
    assert.deepEqual(await idsOf(tested as never), [1])
  }),

  check('rolls back when the work fails, and rejects with its error', async (tested) => {
    const work = tested.db.begin(async (open) => {
      await open.query(sql.raw(insert(1)))
      throw refusal
    })
    await assert.rejects(work, (error) => error === refusal)
    assert.deepEqual(await idsOf(tested as never), [])
  }),

  check('rejects when Postgres refuses COMMIT', async (tested) => {
    const work = tested.db.begin(async (open) => {
      await open.query(sql.raw(insert(1)))
      await open.query(sql.raw(insert(1)))
    })
    await assert.rejects(work)
    assert.deepEqual(await idsOf(tested as never), [])
  }),

  check(
    'resolves only if it committed, also if a failed statement was not awaited',
    async (tested) => {
      await tested.db.query(sql.raw(`create unique index on ${TABLE} (id)`))
      await tested.db.query(sql.raw(insert(1)))
      const watch = { ...noWatch, isOver: false, use: () => {} }
      watch.use = () => {
        if (watch.isOver) throw refusal
      }
      const work = guarded(tested, watch, async (tx, open) => {
        const failing = tested.query(tx, insert(1)).catch(() => {})
        // Some clients send a query a moment after it is made.
        await Promise.resolve()
        watch.isOver = true
        await open.query(sql.raw(insert(2)))
        return { failing }
      })
      const isResolved = await work.then(
        () => true,
        () => false,
      )
      assert.deepEqual(await idsOf(tested as never), isResolved ? [1, 2] : [1])
    },
  ),

  check('begins with the settings that it is given', async ({ db }) => {
    const settings = {
      isolationLevel: 'serializable',
      accessMode: 'read only',
      deferrable: true,
    } as const
    const names = ['transaction_isolation', 'transaction_read_only', 'transaction_deferrable']
    const shown = await db.begin(async (open) => {
      const found: unknown[] = []
      for (const name of names) {
        const [row] = await open.query(sql`select current_setting(${name}::text) as value`)
        found.push((row as { value: unknown }).value)
      }
      return found
    }, settings)
    assert.deepEqual(shown, ['serializable', 'on', 'on'])
  }),

  check('undoes a savepoint alone, and what is nested in it', async (tested) => {
    await tested.db.begin(async (open) => {
      await open.query(sql.raw(insert(1)))
      const undone = open.savepoint(async (inner) => {
        await inner.query(sql.raw(insert(2)))
        await inner.savepoint(async (innermost) => innermost.query(sql.raw(insert(3))))
        throw refusal
      })
      await assert.rejects(undone, (error) => error === refusal)
      await open.savepoint(async (inner) => inner.query(sql.raw(insert(4))))
    })
    assert.deepEqual(await idsOf(tested as never), [1, 4])
  }),

  check('lets a statement run after a failed one in a savepoint', async (tested) => {
    await tested.db.begin(async (open) => {
      const failed = open.savepoint(async (inner) => inner.query(sql`select 1 / 0`))
      await assert.rejects(failed)
      await open.query(sql.raw(insert(1)))
    })
    assert.deepEqual(await idsOf(tested as never), [1])
  }),

  check('announces each use, and sends nothing that is refused', async (tested) => {
    const watch = { ...noWatch, uses: 0, isOver: false, use: () => {} }
    watch.use = () => {
      watch.uses += 1
      if (watch.isOver) throw refusal
    }
    await guarded(tested, watch, async (tx) => {
      await tested.query(tx, insert(1))
      assert.ok(watch.uses > 0)
      watch.isOver = true
      await assert.rejects(
        async () => await tested.query(tx, insert(2)),
        (error) => error === refusal,
      )
    })
    assert.deepEqual(await idsOf(tested as never), [1])
  }),

  check("hands the client's own way to nest to the watch", async (tested) => {
    const nested: unknown[] = []
    const savepoint = async (work: unknown) => void nested.push(work)
    await guarded(tested, { ...noWatch, savepoint }, async (tx) => {
      await tested.nest(tx, async () => {})
    })
    assert.equal(typeof nested[0], 'function')
  }),

  check('refuses statements that would end the transaction', async (tested) => {
    await guarded(tested, noWatch, async (tx) => {
      for (const text of ['commit', 'rollback', 'savepoint mine']) {
        await assert.rejects(async () => await tested.query(tx, text), {
          code: 'TRANSACTION_CONTROL',
        })
      }
      await tested.query(tx, insert(1))
    })
    assert.deepEqual(await idsOf(tested as never), [1])
  }),

  check('refuses the transaction when it is over', async (tested) => {
    const late = await guarded(tested, noWatch, async (tx) => [tx])
    await assert.rejects(async () => await tested.query(late[0]!, insert(1)))
    assert.deepEqual(await idsOf(tested as never), [])
  }),

  check('joins an open transaction, and nothing else', async (tested) => {
    await guarded(tested, noWatch, async (tx) => {
      await tested.db.join(tx).query(sql.raw(insert(1)))
      assert.throws(() => tested.db.join({} as never), { code: 'OPTIONS_INVALID' })
      assert.throws(() => tested.db.join(tested.db.client as never), { code: 'OPTIONS_INVALID' })
    })
    assert.deepEqual(await idsOf(tested as never), [1])
  }),
]
