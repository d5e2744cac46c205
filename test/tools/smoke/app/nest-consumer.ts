// aftercommit/nestjs as an application compiles it, with the declarations of a supported Nest and terminus.
import { Injectable, Module } from '@nestjs/common'
import { HealthCheckService, type HealthIndicatorResult } from '@nestjs/terminus'
import { defineEvents, event, type Outbox } from 'aftercommit'
import {
  type HandledEventOf,
  InjectOutbox,
  InjectOutboxDb,
  nestHandlers,
  OnOutboxEvent,
  OutboxHealthIndicator,
  OutboxModule,
} from 'aftercommit/nestjs'
import { postgresJs } from 'aftercommit/postgres-js'
import postgres from 'postgres'

const events = defineEvents({
  OrderPlaced: event<{ orderId: string; at: Date }>({
    aggregate: 'order',
    key: ({ orderId }) => orderId,
  }),
})
const db = postgresJs(postgres())

@Injectable()
export class Orders {
  constructor(
    @InjectOutbox() private readonly outbox: Outbox<typeof db, typeof events>,
    @InjectOutboxDb() readonly sql: postgres.Sql,
    private readonly health: HealthCheckService,
    private readonly indicator: OutboxHealthIndicator,
  ) {}

  async place(orderId: string): Promise<string> {
    return await this.outbox.withOutbox((_tx, emit) =>
      emit('OrderPlaced', { orderId, at: new Date() }),
    )
  }

  @OnOutboxEvent(events, 'OrderPlaced')
  placed({ payload }: HandledEventOf<typeof events, 'OrderPlaced'>): void {
    const at: string = payload.at
    console.log(payload.orderId, at)
  }

  async check() {
    const result: HealthIndicatorResult = await this.indicator.isHealthy('outbox')
    return [result, await this.health.check([() => this.indicator.isHealthy('outbox')])]
  }
}

@Module({
  imports: [
    OutboxModule.forRoot({ db, events, publisher: nestHandlers({ timeout: '5s' }) }),
    OutboxModule.forRootAsync({
      name: 'other',
      inject: [Orders],
      useFactory: async (_orders: Orders) => ({ db, start: false }),
    }),
  ],
  providers: [Orders],
})
export class AppModule {}
