// Any value for any option either works or is refused with a code and the option's name; never a TypeError.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { OutboxOptionsError } from '../../src/index.ts'
import { DEFAULTS, resolveOptions } from '../../src/options.ts'
import { handlersPublisher } from '../../src/publishers/handlers.ts'
import { kafkaPublisher } from '../../src/publishers/kafka.ts'

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
  'topic',
  'maxBacklog',
  'deadLetterTopic',
  'logger',
  'workerId',
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

it('takes or refuses any object of options', () => {
  fc.assert(
    fc.property(odd, (value) => {
      for (const take of [resolveOptions, handlersPublisher, kafkaPublisher]) {
        expect(() => take(value as never)).toThrow(OutboxOptionsError)
      }
    }),
    { seed: 1, numRuns: 300 },
  )
})
