// The types of aftercommit/nestjs, checked by tsc as part of `npm run check`; vitest runs this file for its form only.
import type { HealthIndicatorFunction } from '@nestjs/terminus'
import { expectTypeOf, it } from 'vitest'
import { defineEvents, event } from '../../src/index.ts'
import {
  type HandledEvent,
  type HandledEventOf,
  OnOutboxEvent,
  type OutboxHealthIndicator,
  OutboxModule,
} from '../../src/nestjs/nestjs.ts'
import { postgresJs } from '../../src/drivers/postgres-js.ts'

const events = defineEvents({
  OrderPlaced: event<{ id: number; at: Date }>({ aggregate: 'order', key: (e) => e.id }),
  OrderPaid: event<{ id: number; amount: number }>({ aggregate: 'order', key: (e) => e.id }),
})

it('checks a handler against the catalog', () => {
  class Handlers {
    @OnOutboxEvent(events, 'OrderPlaced')
    placed({ payload }: HandledEventOf<typeof events, 'OrderPlaced'>, signal: AbortSignal) {
      expectTypeOf(payload).toEqualTypeOf<{ id: number; at: string }>()
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
    }

    @OnOutboxEvent(events, 'OrderPlaced')
    @OnOutboxEvent(events, 'OrderPaid')
    async either(_event: HandledEvent<{ id: number }>) {}

    @OnOutboxEvent('Anything')
    anything(_event: HandledEvent<{ whatever: string }>) {}

    @OnOutboxEvent(events, 'OrderPaid')
    nothing() {}

    // @ts-expect-error the catalog has no such event
    @OnOutboxEvent(events, 'OrderPlacd')
    misspelt() {}

    // @ts-expect-error the payload is that of another event
    @OnOutboxEvent(events, 'OrderPlaced')
    wrong(_event: HandledEventOf<typeof events, 'OrderPaid'>) {}

    // @ts-expect-error a handler takes an event
    @OnOutboxEvent('Anything')
    notAnEvent(_number: number) {}
  }
  expectTypeOf(Handlers).toBeConstructibleWith()
})

it('takes the options of any database and catalog, and no others', () => {
  const check = () => {
    const db = postgresJs('postgres://localhost/shop' as never)
    OutboxModule.forRoot({ db, events, threshold: '5s', start: false, name: 'shop' })
    OutboxModule.forRootAsync({ useFactory: async () => ({ db, events }), inject: ['settings'] })
    // @ts-expect-error the database is missing
    OutboxModule.forRoot({ events })
    // @ts-expect-error there is no such option
    OutboxModule.forRoot({ db, strat: false })
  }
  expectTypeOf(check).toBeFunction()
})

it('reports health as terminus takes it', () => {
  const check = (indicator: OutboxHealthIndicator): HealthIndicatorFunction => {
    return () => indicator.isHealthy('outbox', { maxPending: 1 })
  }
  expectTypeOf(check).toBeFunction()
})
