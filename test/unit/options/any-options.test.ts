// Any value for any option either works or is refused with a code and the option's name; never a TypeError.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { resolveInboxOptions } from '../../../src/inbox/options.ts'
import { defineEvents, OutboxOptionsError, routerPublisher } from '../../../src/index.ts'
import { DEFAULTS, resolveOptions } from '../../../src/options/options.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'

const db = { execute: async () => [], transaction: async () => {} }
const publisher = handlersPublisher({ handlers: {} })
const odd = fc.oneof(
  fc.anything({
    withBigInt: true,
    withDate: true,
    withNullPrototype: true,
    withSymbol: true,
  } as object),
  fc.constantFrom('7s', '0ms', '99999d', '1e3s', '-1s', '* * * * *', '0 0 31 2 *', ' ', '🙂s'),
  fc.integer(),
)
const options = [
  ...Object.keys(DEFAULTS),
  'events',
  'topic',
  'batchSize',
  'maxBacklog',
  'deadLetterTopic',
  'logger',
  'workerId',
  'payloads',
]

it.each([...options, 'deadLetterRetention', 'db', 'publisher'])(
  'takes or refuses any %s',
  (option) => {
    const verdict = (value: unknown) => {
      try {
        return typeof resolveOptions({ db, publisher, [option]: value })
      } catch (error) {
        return error instanceof OutboxOptionsError ? 'refused' : error
      }
    }
    fc.assert(
      fc.property(odd, (value) => {
        expect(['object', 'refused']).toContain(verdict(value))
      }),
      { seed: 1, numRuns: 300 },
    )
  },
)

const inboxOptions = ['order', 'retention', 'cleanup', 'schema', 'table', 'migrate', 'events']

it.each([...inboxOptions, 'consumer', 'db', 'logger'])(
  'takes or refuses any %s of an inbox',
  (option) => {
    const verdict = (value: unknown) => {
      try {
        return typeof resolveInboxOptions({ db, consumer: 'billing', [option]: value })
      } catch (error) {
        return error instanceof OutboxOptionsError ? 'refused' : error
      }
    }
    fc.assert(
      fc.property(odd, (value) => {
        expect(['object', 'refused']).toContain(verdict(value))
      }),
      { seed: 1, numRuns: 300 },
    )
  },
)

it('takes or refuses any declaration of an event', () => {
  const keys = ['aggregate', 'key', 'schema', 'topic', 'headers', 'maxAttempts', 'version'] as const
  const whole = { aggregate: 'order', key: () => 1 }
  const verdict = (declaration: object) => {
    try {
      return typeof defineEvents({ OrderPlaced: declaration } as never)
    } catch (error) {
      return error instanceof OutboxOptionsError ? 'refused' : error
    }
  }
  fc.assert(
    fc.property(fc.constantFrom(...keys), odd, (key, value) => {
      expect(['object', 'refused']).toContain(verdict({ ...whole, [key]: value }))
    }),
    { seed: 1, numRuns: 2_000 },
  )
})

it('takes or refuses any part of a router, and any part of a table of topics', () => {
  const router = { publishers: { one: publisher }, routes: { orders: 'one' as const } }
  const verdict = (build: () => unknown) => {
    try {
      return typeof build()
    } catch (error) {
      return error instanceof OutboxOptionsError ? 'refused' : error
    }
  }
  const parts = fc.constantFrom('publishers', 'routes', 'otherwise')
  fc.assert(
    fc.property(parts, odd, fc.constantFrom('byType', 'byAggregate'), (part, value, by) => {
      const route = () => routerPublisher({ ...router, [part]: value })
      expect(['object', 'refused']).toContain(verdict(route))
      const table = () => resolveOptions({ db, publisher, topic: { [by]: value } })
      expect(['object', 'refused']).toContain(verdict(table))
    }),
    { seed: 1, numRuns: 1_000 },
  )
})

it('takes or refuses any object of options', () => {
  fc.assert(
    fc.property(odd, (value) => {
      const makers = [resolveOptions, resolveInboxOptions, defineEvents]
      const takers = [...makers, handlersPublisher, kafkaPublisher, routerPublisher]
      for (const take of takers as ((value: unknown) => unknown)[]) {
        expect(() => take(value)).toThrow(OutboxOptionsError)
      }
    }),
    { seed: 1, numRuns: 300 },
  )
})
