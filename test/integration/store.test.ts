// The Postgres store on every driver. A store for another database would have such a file of its own.
import postgres from 'postgres'
import { databaseOf } from '../../src/drivers/database-of.ts'
import type { Executor } from '../../src/drivers/driver.ts'
import { postgresStore } from '../../src/store/postgres.ts'
import { sql } from '../../src/store/sql.ts'
import { createDatabase } from '../support/database.ts'
import {
  drizzleOnPglite,
  drizzleOnPostgresJs,
  SERVED_DRIVERS,
  type TestDriver,
} from '../support/drivers.ts'
import { describeStore } from '../support/store-conformance.ts'
import type { StoreUnderTest } from '../support/store-under-test.ts'

function openStore(driver: TestDriver, url: string, drop = async () => {}) {
  const { db, close } = driver.open(url)
  const database = databaseOf(db)
  const tested: StoreUnderTest<Executor> = {
    store: (rules) => postgresStore(database, rules),
    transaction: (work, settings) => database.begin(work, settings),
    empty: async (table) => void (await database.query(sql.raw(`truncate ${table}`))),
    close: () => close().then(drop),
  }
  return tested
}

for (const driver of SERVED_DRIVERS) {
  describeStore(driver.name, {
    sessions: 'many',
    async open() {
      const database = await createDatabase()
      return openStore(driver, database.url, () => database.drop())
    },
  })
}

describeStore(drizzleOnPglite.name, {
  sessions: 'one',
  open: async () => openStore(drizzleOnPglite, ''),
})

// Who keeps the table in migrations of their own may have the table alone.
describeStore(`${drizzleOnPostgresJs.name}, without the function`, {
  sessions: 'many',
  async open() {
    const database = await createDatabase()
    const tested = openStore(drizzleOnPostgresJs, database.url, () => database.drop())
    const client = postgres(database.url, { max: 1, onnotice: () => {} })
    return {
      ...tested,
      store: (rules) => {
        const store = tested.store(rules)
        const migrate = async () => {
          await store.migrate()
          await client`drop function if exists outbox_after`
        }
        return { ...store, migrate }
      },
      close: () => client.end().then(() => tested.close()),
    }
  },
})
