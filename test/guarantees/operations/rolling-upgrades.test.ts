// Two versions on one table: an older one meets the migrations of a newer one, and a migration under load keeps no save
// waiting. `npm run upgrade` runs the last version beside this one.
import { describe, expect, it } from 'vitest'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { useFixture } from '../../support/fixture.ts'
import { defer } from '../../support/timing/deferred.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture({ partitioned: false })
const publisher = handlersPublisher({ handlers: { OrderCompleted: () => {} } })

describe('a newer version', () => {
  const addMigration = async (schema: string, name: string) => {
    await fixture.store({ schema }).migrate()
    await fixture.sql.unsafe(`insert into ${schema}.outbox_migrations (name) values ('${name}')`)
  }

  it('may have migrated the table: this one goes on, and says so', async () => {
    await addMigration('ahead', '9998_more.sql')
    const logger = recordingLogger()
    await fixture.outbox({ publisher, schema: 'ahead', logger }).start()
    expect(logger.lines).toContainEqual(
      expect.objectContaining({ level: 'warn', fields: { migrations: ['9998_more.sql'] } }),
    )
  })

  it('may have made the table unusable for this one, which refuses to start', async () => {
    await addMigration('beyond', '9999_breaking_change.sql')
    await expect(fixture.outbox({ publisher, schema: 'beyond' }).start()).rejects.toMatchObject({
      code: 'SCHEMA_NEWER',
      message: expect.stringContaining('9999_breaking_change.sql'),
    })
  })
})

it('lets saves through while a migration waits for a lock, and applies it once the lock is free', async () => {
  const outbox = fixture.outbox({ publisher, schema: 'locked' })
  await outbox.migrate()
  const held = defer()
  const holding = defer()
  const holder = fixture.sql.begin(async (tx) => {
    await tx`select from locked.outbox`
    holding.resolve()
    await held.promise
  })
  await holding.promise
  const migrated = outbox.migrate({ partitioned: true })
  const waits = async () => {
    const [row] = await fixture.sql`select count(*)::int as waiting from pg_locks
      where not granted and mode = 'AccessExclusiveLock' and relation = 'locked.outbox'::regclass`
    return row!['waiting'] === 1
  }
  await waitUntil(waits, { message: 'the migration waits for its lock' })
  await outbox.withOutbox((_, emit) => emit(newEvent()))
  held.resolve()
  await holder
  await migrated
  const [row] =
    await fixture.sql`select relkind from pg_class where oid = 'locked.outbox'::regclass`
  expect(row!['relkind']).toBe('p')
})
