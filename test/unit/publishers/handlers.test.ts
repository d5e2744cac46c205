import { describe, expect, it } from 'vitest'
import { defineEvents, event } from '../../../src/event/catalog.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'

describe('handlersPublisher() with a catalog', () => {
  const whole = { aggregate: 'order', key: () => 'o-1' }
  const events = defineEvents({ OrderCompleted: event(whole), OrderPlaced: event(whole) })

  it('takes handlers for its events, not necessarily all, and for copies of dead letters', () => {
    const handlers = { OrderPlaced: () => {}, DeadLettered: () => {} }
    expect(handlersPublisher({ events, handlers })).toMatchObject({ name: 'handlers' })
  })

  it('refuses a handler for an event that there is not', () => {
    const handlers = { OrderPlced: () => {} }
    expect(() => handlersPublisher({ events, handlers } as never)).toThrow(
      /handler for 'OrderPlced', which is not in the catalog; did you mean 'OrderPlaced'\?/,
    )
    expect(() => handlersPublisher({ events: {}, handlers } as never)).toThrow(/declares nothing/)
  })
})
