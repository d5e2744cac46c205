// The application: its outbox is made of what other modules provide.
import { Module } from '@nestjs/common'
import { OutboxModule } from 'aftercommit/nestjs'
import { ConfirmationsModule } from './confirmations.ts'
import { Database, DatabaseModule } from './database.ts'
import { events } from './events.ts'
import { HealthModule } from './health.ts'
import { OrdersModule } from './orders.ts'

@Module({
  imports: [
    OutboxModule.forRootAsync({
      imports: [DatabaseModule],
      inject: [Database],
      useFactory: ({ db }: Database) => ({ db, events, migrate: true }),
    }),
    OrdersModule,
    ConfirmationsModule,
    HealthModule,
  ],
})
export class AppModule {}
