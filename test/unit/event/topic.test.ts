import { describe, expect, it } from 'vitest'
import { prepareEmitted } from '../../../src/event/emit.ts'
import { defineEvents, event, type NewEvent, routerPublisher } from '../../../src/index.ts'
import { resolveOptions } from '../../../src/options/options.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'

const db = { execute: async () => [], transaction: async () => {} }
const plain = () => ({ name: 'none', publish: async () => [] })
const resolve = (options: object) => resolveOptions({ db, publisher: plain(), ...options })
const emit = (overrides: Partial<NewEvent>, options: object) =>
  prepareEmitted([newEvent(overrides)], resolve(options))[0]!.topic

const router = () =>
  routerPublisher({
    publishers: { kafka: plain(), rabbit: plain() },
    routes: { orders: 'kafka', invoices: 'rabbit' },
  })
const NO_ROUTE = expect.objectContaining({ name: 'EventRefusedError', code: 'NO_ROUTE' })

describe('a table of topics', () => {
  const topic = {
    byType: { OrderCompleted: 'completed' },
    byAggregate: { order: 'orders', invoice: 'invoices' },
  }

  it('looks for the type of an event first, then for its aggregate', () => {
    expect(emit({}, { topic })).toBe('completed')
    expect(emit({ type: 'OrderPlaced' }, { topic })).toBe('orders')
    expect(emit({ type: 'InvoiceSent', aggregateType: 'invoice' }, { topic })).toBe('invoices')
  })

  it('comes after the topic of the event itself', () => {
    expect(emit({ topic: 'mine' }, { topic })).toBe('mine')
    expect(emit({ topic: 'mine', type: 'Other', aggregateType: 'other' }, { topic })).toBe('mine')
  })

  it('refuses what it does not name, and says the type, the aggregate type and the remedy', () => {
    const stray = () => emit({ type: 'UserLeft', aggregateType: 'user' }, { topic })
    expect(stray).toThrow(NO_ROUTE)
    expect(stray).toThrow(/'UserLeft' of the aggregate type 'user' has no topic.* add one of them/)
  })

  it.each(['constructor', 'toString', '__proto__', 'hasOwnProperty'])(
    'finds nothing for the name %s unless it is in it',
    (name) => {
      const stray = () => emit({ type: name, aggregateType: name }, { topic })
      expect(stray).toThrow(NO_ROUTE)
      const named = JSON.parse(`{ "byType": { "${name}": "found" } }`) as object
      expect(emit({ type: name, aggregateType: name }, { topic: named })).toBe('found')
    },
  )

  it('stays as it was when it was given', () => {
    const mine = { byType: { OrderCompleted: 'first' } as Record<string, string> }
    const rules = resolve({ topic: mine })
    mine.byType['OrderCompleted'] = 'second'
    expect(prepareEmitted([newEvent()], rules)[0]!.topic).toBe('first')
    const table = rules.topic as typeof mine
    expect(Object.isFrozen(table) && Object.isFrozen(table.byType)).toBe(true)
  })

  it.each([
    [{}, /topic is an empty table; give it byType or byAggregate/],
    [{ byTyp: {} }, /the table topic has no option 'byTyp'; did you mean 'byType'\?/],
    [{ byType: 'orders' }, /topic\.byType must be an object of topics, got 'orders'/],
    [{ byType: { A: 3 } }, /topic\.byType\.A must be a non-empty string, got 3/],
    [{ byAggregate: { order: '' } }, /topic\.byAggregate\.order must be a non-empty string/],
  ])('is refused as %o', (table, message) => {
    expect(() => resolve({ topic: table })).toThrow(message)
  })
})

describe('a function that answers a topic', () => {
  it.each([undefined, null])('refuses what it answers %s for', (answer) => {
    const topic = ({ type }: NewEvent) => (type === 'OrderCompleted' ? 'orders' : answer)
    expect(emit({}, { topic })).toBe('orders')
    const stray = () => emit({ type: 'UserLeft', aggregateType: 'user' }, { topic })
    expect(stray).toThrow(NO_ROUTE)
    expect(stray).toThrow(/'UserLeft' of the aggregate type 'user'.*the function given as topic/)
  })
})

describe('with a router', () => {
  it('refuses an event whose topic no route names, wherever the topic comes from', () => {
    expect(emit({ aggregateType: 'orders' }, { publisher: router() })).toBe('orders')
    const stray = () => emit({ aggregateType: 'order' }, { publisher: router() })
    expect(stray).toThrow(NO_ROUTE)
    expect(stray).toThrow(/'OrderCompleted' of the aggregate type 'order'.*did you mean 'orders'\?/)
    const own = () => emit({ aggregateType: 'orders', topic: 'elsewhere' }, { publisher: router() })
    expect(own).toThrow(NO_ROUTE)
    const computed = { publisher: router(), topic: () => 'constructor' }
    expect(() => emit({}, computed)).toThrow(/add it to the routes of routerPublisher\(\)/)
  })

  it('takes every topic when there is a publisher for all others', () => {
    const publisher = routerPublisher({
      publishers: { kafka: plain(), rabbit: plain() },
      routes: { invoices: 'rabbit' },
      otherwise: 'kafka',
    })
    expect(emit({ topic: 'anything' }, { publisher })).toBe('anything')
  })

  it.each([
    [{ deadLetterTopic: 'dead' }, /deadLetterTopic is 'dead', which has no publisher;/],
    [{ topic: 'order' }, /topic is 'order', which has no publisher; .* did you mean 'orders'\?/],
    [{ topic: { byType: { A: 'order' } } }, /topic\.byType\.A is 'order', which has no publisher;/],
    [
      { topic: { byAggregate: { invoice: 'bills' } } },
      /topic\.byAggregate\.invoice is 'bills', .* add it to the routes/,
    ],
  ])('refuses to begin with a topic that leads nowhere: %o', (options, message) => {
    expect(() => resolve({ publisher: router(), ...options })).toThrow(message)
  })
})

describe('with a catalog', () => {
  const placed = (topic?: string) =>
    defineEvents({
      OrderPlaced: event<{ id: string }>({
        aggregate: 'order',
        key: ({ id }) => id,
        ...(topic && { topic }),
      }),
    })

  const nowhere = (): undefined => undefined
  it.each([
    ['by its type', { topic: { byType: { OrderPlaced: 'orders' } } }],
    ['by its aggregate', { topic: { byAggregate: { order: 'orders' } } }],
    ['by a function, of which nothing is known', { topic: nowhere }],
    ['by a function, with a router', { topic: nowhere, publisher: router() }],
    ['by one topic for all', { topic: 'orders', publisher: router() }],
    ['by its declaration', { events: placed('orders'), publisher: router() }],
  ])('begins where an event may have a route %s', (_how, options) => {
    expect(() => resolve({ events: placed(), ...options })).not.toThrow()
  })

  it.each([
    [
      'is in no table',
      { topic: { byAggregate: {} } },
      /the event 'OrderPlaced' of the aggregate 'order' has no topic: .* declare a topic/,
    ],
    [
      'is misspelt in the table',
      { topic: { byType: { OrderPlacd: 'orders' } } },
      /topic\.byType names 'OrderPlacd', which is not in the catalog; did you mean/,
    ],
    [
      'has its aggregate misspelt in the table',
      { topic: { byType: { OrderPlaced: 'orders' }, byAggregate: { orders: 'orders' } } },
      /topic\.byAggregate names 'orders', .*did you mean 'order'/,
    ],
    [
      'has an aggregate type that is no topic of the router',
      { publisher: router() },
      /the topic of the event 'OrderPlaced' is 'order', which has no publisher;/,
    ],
    [
      'declares a topic that is none of the router',
      { publisher: router(), topic: () => 'orders', events: placed('elsewhere') },
      /the topic of the event 'OrderPlaced' is 'elsewhere'/,
    ],
  ])('is refused at once when an event %s', (_what, options, message) => {
    expect(() => resolve({ events: placed(), ...options })).toThrow(message)
  })
})
