// The types of handlers, checked by tsc as part of `npm run check`; vitest runs this file for its form only.
import { expectTypeOf, it } from 'vitest'
import { defineEvents, event } from '../../src/index.ts'
import { handlersPublisher } from '../../src/publishers/handlers.ts'

type Completed = { orderId: string; total: number }

const events = defineEvents({
  OrderPlaced: event<{ id: number; at: Date }>({ aggregate: 'order', key: (e) => e.id }),
  OrderCompleted: event<Completed>({ aggregate: 'order', key: (e) => e.orderId }),
})
type Events = typeof events

it('types the payloads of handlers by the catalog, and knows their names', () => {
  const check = () => {
    handlersPublisher({
      events,
      handlers: {
        OrderCompleted: (handled) => {
          expectTypeOf(handled.payload).toEqualTypeOf<Completed>()
        },
        async OrderPlaced({ payload, headers }, signal) {
          expectTypeOf(payload.at).toEqualTypeOf<string>()
          expectTypeOf(headers).toEqualTypeOf<Readonly<Record<string, string>>>()
          expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
        },
        DeadLettered: ({ payload }) => {
          expectTypeOf(payload).toEqualTypeOf<unknown>()
        },
      },
    })
    handlersPublisher<Events>({
      handlers: {
        OrderPlaced: ({ payload }) => {
          expectTypeOf(payload.at).toEqualTypeOf<string>()
        },
      },
    })
    // @ts-expect-error there is no such event
    handlersPublisher({ events, handlers: { OrderComplete: () => {} } })
    // @ts-expect-error the payload has no such property
    handlersPublisher({ events, handlers: { OrderCompleted: ({ payload }) => void payload.id } })
    handlersPublisher({
      handlers: {
        Anything: ({ payload }) => {
          expectTypeOf(payload).toEqualTypeOf<unknown>()
        },
      },
    })
  }
  expectTypeOf(check).toBeFunction()
})
