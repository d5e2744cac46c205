// The database as a provider of its own, which the outbox and the services inject.
import { Inject, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common'
import { sql } from 'drizzle-orm'
import { integer, pgTable, serial, text } from 'drizzle-orm/pg-core'
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { Settings, SettingsModule } from './settings.ts'

export const orders = pgTable('orders', {
  id: serial().primaryKey(),
  customer: text().notNull(),
  total: integer().notNull(),
  status: text().notNull().default('placed'),
})

@Injectable()
export class Database implements OnApplicationShutdown {
  readonly #client: postgres.Sql
  readonly db: PostgresJsDatabase

  constructor(@Inject(Settings) { databaseUrl }: Settings) {
    this.#client = postgres(databaseUrl, { onnotice: () => {} })
    this.db = drizzle(this.#client)
  }

  async createTables(): Promise<void> {
    await this.db.execute(
      sql`create table if not exists orders (id serial primary key, customer text not null, total integer not null, status text not null default 'placed')`,
    )
  }

  // In this hook and not in onModuleDestroy(): the last requests and the outbox need it until here.
  async onApplicationShutdown(): Promise<void> {
    await this.#client.end()
  }
}

@Module({
  imports: [SettingsModule],
  providers: [
    {
      provide: Database,
      useFactory: async (settings: Settings) => {
        const database = new Database(settings)
        await database.createTables()
        return database
      },
      inject: [Settings],
    },
  ],
  exports: [Database],
})
export class DatabaseModule {}
