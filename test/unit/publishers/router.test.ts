import { expect, it } from 'vitest'
import { routerPublisher } from '../../../src/index.ts'
import { resolveOptions } from '../../../src/options/options.ts'

const plain = (timing: object = {}) => ({ name: 'none', publish: async () => [], ...timing })
const scopes = (options: Parameters<typeof routerPublisher>[0]) =>
  routerPublisher(options).destinations.map(({ name, topics }) => [name, topics])

it('gives each publisher its topics', () => {
  const publishers = { kafka: plain(), rabbit: plain() }
  const routes = { orders: 'kafka', invoices: 'rabbit', users: 'kafka' } as const
  expect(scopes({ publishers, routes })).toEqual([
    ['kafka', { only: ['orders', 'users'], except: [] }],
    ['rabbit', { only: ['invoices'], except: [] }],
  ])
  expect(scopes({ publishers, routes, otherwise: 'kafka' })).toEqual([
    ['kafka', { only: null, except: ['invoices'] }],
    ['rabbit', { only: ['invoices'], except: [] }],
  ])
})

it('stays as it was when it was given', () => {
  const routes: Record<string, 'kafka' | 'rabbit'> = { orders: 'kafka', invoices: 'rabbit' }
  const router = routerPublisher({ publishers: { kafka: plain(), rabbit: plain() }, routes })
  routes['more'] = 'kafka'
  expect(router.destinations[0]?.topics.only).toEqual(['orders'])
  expect(Object.isFrozen(router.destinations[0])).toBe(true)
})

const kafka = plain()
const nested = routerPublisher({ publishers: { kafka: plain() }, routes: { orders: 'kafka' } })
it.each([
  [undefined, /routerPublisher\(\) takes an object with options, got undefined/],
  [{ publishers: { kafka }, route: {} }, /has no option 'route'; did you mean 'routes'\?/],
  [{ publishers: {}, routes: {} }, /routerPublisher\(\) has no publishers; name them/],
  [{ publishers: 'kafka', routes: {} }, /publishers of routerPublisher\(\) must be an object/],
  [{ publishers: { kafka } }, /routes of routerPublisher\(\) must be an object, got undefined/],
  [{ publishers: { kafka: {} }, routes: {} }, /the publisher 'kafka' must be a publisher such as/],
  [
    { publishers: { kafka }, routes: { orders: 'kafak' } },
    /the topic 'orders' goes to 'kafak', which is not a name in publishers; did you mean 'kafka'\?/,
  ],
  [
    { publishers: { kafka }, routes: { orders: 'toString' } },
    /goes to 'toString', which is not a name/,
  ],
  [{ publishers: { kafka }, routes: { orders: kafka } }, /goes to an object, which is not a name/],
  [{ publishers: { kafka }, routes: { '': 'kafka' } }, /a topic in routes must be a non-empty/],
  [
    { publishers: { kafka }, routes: { orders: 'kafka' }, otherwise: 'rabbit' },
    /otherwise is 'rabbit', which is not a name in publishers; expected one of kafka/,
  ],
  [
    { publishers: { kafka, rabbit: plain() }, routes: { orders: 'kafka' } },
    /a publisher 'rabbit' that no topic goes to; name it in routes or in otherwise, or remove it/,
  ],
  [
    { publishers: { a: kafka, b: kafka }, routes: { orders: 'a', users: 'b' } },
    /the publisher 'b' is the same object as 'a', .* keep one name and route all their topics to it/,
  ],
  [
    { publishers: { all: nested }, routes: { orders: 'all' } },
    /the publisher 'all' is a router itself; put its publishers and routes into this one/,
  ],
])('refuses %o', (options, message) => {
  expect(() => routerPublisher(options as never)).toThrow(message)
})

it('has what each publisher says of itself checked, under the name that it has there', () => {
  const db = { execute: async () => [], transaction: async () => {} }
  const create = (about: object) => {
    const publishers = { fine: plain(), odd: plain(about) }
    const publisher = routerPublisher({ publishers, routes: { a: 'fine', b: 'odd' } })
    return () => resolveOptions({ db, publisher })
  }
  expect(create({ settlesWithinMs: 1_000 })).toThrow(
    /the publisher odd declares that a send settles/,
  )
  expect(create({ settlesWithinMs: 2 ** 40 })).toThrow(/the publisher odd may take/)
  expect(create({ settlesWithinMs: 5_000 })).not.toThrow()
  expect(create({ batchSize: 0 })).toThrow(
    /batchSize of the publisher odd must be a whole number from 1 to 10000, got 0/,
  )
})
