// The save is run over and over, so its plans are kept: of the function in it, and by the client that prepares it. What is
// kept must stay right while the table grows, and must not be kept where connections go from hand to hand.
import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { databaseOf } from '../../../src/drivers/database-of.ts'
import { createOutbox } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { sql } from '../../../src/drivers/sql.ts'
import { directUrl } from '../../support/servers/database.ts'
import { drizzleOnPostgresJs, SERVED_DRIVERS } from '../../support/drivers.ts'
import { useFixture } from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { prepare } from '../../support/conformance/store-under-test.ts'

const fixture = useFixture()
const publisher = handlersPublisher({ handlers: { OrderCompleted: () => {} } })

/** From here on Postgres may keep a plan that does not look at the parameters. */
const ENOUGH_TO_KEEP = 6

it('saves by the index, also by a plan that was made when the table was empty', async () => {
  await fixture.sql`alter table outbox set (autovacuum_enabled = false)`
  await fixture.sql`vacuum analyze outbox`
  const store = fixture.store()
  const lease = { token: randomUUID(), workerId: 'test', ms: 60_000 }
  await databaseOf(fixture.db).begin(async (tx) => {
    const readWhole = async () =>
      await tx.query(sql`select seq_scan from pg_stat_xact_user_tables where relname = 'outbox'`)
    const before = await readWhole()
    for (let n = 0; n < 2 * ENOUGH_TO_KEEP; n += 1) await store.save(tx, prepare([{}]), lease)
    expect(await readWhole()).toEqual(before)
  })
})

const preparing = new Set(['Drizzle on postgres-js', 'postgres.js'])

it.each(SERVED_DRIVERS.flatMap((driver) => [true, false].map((may) => ({ driver, may }))))(
  'prepares the save only where the client says that it may ($driver.name, prepare: $may)',
  async ({ driver, may }) => {
    const { db, close } = driver.open(directUrl(fixture.url), { max: 1, prepare: may })
    try {
      const outbox = createOutbox({ db, publisher })
      const prepared: number[] = []
      for (let n = 0; n < 3; n += 1) {
        await outbox.withOutbox(async (tx, emit) => {
          const rows = await driver.query(
            tx,
            "select 1 from pg_prepared_statements where statement like '%save events%'",
          )
          prepared.push(rows.length)
          emit(newEvent())
        })
      }
      expect(prepared).toEqual(may && preparing.has(driver.name) ? [0, 1, 1] : [0, 0, 0])
    } finally {
      await close()
    }
  },
)

// As behind a pooler that does not keep what is prepared: the connection is the client's, the session is another's.
it('says what to set where a session has forgotten what was prepared in it', async () => {
  const { db, close } = drizzleOnPostgresJs.open(directUrl(fixture.url), { max: 1 })
  try {
    const outbox = createOutbox({ db, publisher })
    const save = (forget: boolean) =>
      outbox.withOutbox(async (tx, emit) => {
        emit(newEvent())
        if (forget) await tx.execute('deallocate all')
      })
    await save(false)
    const refused = save(true)
    await expect(refused).rejects.toMatchObject({ code: 'STORE_FAILED' })
    await expect(refused).rejects.toThrow('prepare: false')
    expect(await fixture.rows()).toHaveLength(1)
  } finally {
    await close()
  }
})
