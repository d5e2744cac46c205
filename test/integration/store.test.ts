// The Postgres store on every driver. A store for another database would have such a file of its own.
import { databaseOf } from '../../src/drivers/database-of.ts'
import type { Executor } from '../../src/drivers/driver.ts'
import { postgresStore } from '../../src/store/outbox/postgres.ts'
import { sql } from '../../src/drivers/sql.ts'
import { createDatabase } from '../support/servers/database.ts'
import {
  CLIENT_DRIVERS,
  drizzleOnPglite,
  SERVED_DRIVERS,
  type TestDriver,
} from '../support/drivers.ts'
import { describeStore } from '../support/conformance/store-conformance.ts'
import type { StoreUnderTest } from '../support/conformance/store-under-test.ts'

function openStore(driver: TestDriver, url: string, drop = async () => {}) {
  const { db, close } = driver.open(url)
  const database = databaseOf(db)
  const tested: StoreUnderTest<Executor> = {
    store: (rules) => postgresStore(database, rules),
    transaction: (work, settings) => database.begin(work, settings),
    empty: async (table) => {
      await database.query(sql.raw(`truncate ${table}, ${table}_pauses, ${table}_instances`))
    },
    close: () => close().then(drop),
  }
  return tested
}

for (const partitioned of [false, true]) {
  const table = partitioned ? ', with partitions' : ''
  // The statements are the same on all of them, so the second form of the table is for some.
  for (const driver of partitioned ? CLIENT_DRIVERS : SERVED_DRIVERS) {
    describeStore(`${driver.name}${table}`, {
      sessions: 'many',
      partitioned,
      async open() {
        const database = await createDatabase()
        return openStore(driver, database.url, () => database.drop())
      },
    })
  }

  describeStore(`${drizzleOnPglite.name}${table}`, {
    sessions: 'one',
    partitioned,
    open: async () => openStore(drizzleOnPglite, ''),
  })
}
