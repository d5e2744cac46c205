// Statements for a person who waits: Postgres itself ends those that take too long, so that they hold no connection.
import { expect, it } from 'vitest'
import { databaseOf } from '../../src/drivers/database-of.ts'
import { sql } from '../../src/drivers/sql.ts'
import { run } from '../../src/store/database.ts'
import { withLimits } from '../../src/store/limited.ts'
import { useFixture } from '../support/fixture.ts'

const fixture = useFixture()

it('ends a statement on the server when its time is over, and leaves no setting behind', async () => {
  const db = databaseOf(fixture.db)
  const limited = withLimits(db, { lockMs: 1_000, statementMs: 200 })
  const slow = run(limited, 'read slowly', sql`select pg_sleep(60)::text`)
  await expect(slow).rejects.toMatchObject({
    code: 'STORE_TIMEOUT',
    message: expect.stringMatching(/^read slowly: /) as string,
  })
  const [left] = await fixture.sql`
    select count(*)::int as running from pg_stat_activity
    where query like '%read slowly%' and state = 'active' and pid <> pg_backend_pid()`
  expect(left).toEqual({ running: 0 })
  await limited.query(sql`select 1 as one`)
  const settings = await Promise.all(
    Array.from({ length: 5 }, () =>
      db.query(sql`select current_setting('statement_timeout') as s`),
    ),
  )
  expect(settings.flat()).toEqual(Array.from({ length: 5 }, () => ({ s: '0' })))
})

it('gives up on a lock', async () => {
  const limited = withLimits(databaseOf(fixture.db), { lockMs: 100, statementMs: 0 })
  await fixture.sql.begin(async (tx) => {
    await tx`lock table outbox in access exclusive mode`
    await expect(
      run(limited, 'read', sql`select count(*)::int as n from outbox`),
    ).rejects.toMatchObject({ cause: expect.objectContaining({ code: '55P03' }) as unknown })
  })
})
