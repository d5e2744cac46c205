// Whatever a schema accepts arrives as the schema answered it, and what it refuses leaves nothing. Payloads are
// drawn around three schemas; the oracle is what the validators say when they are asked directly.
import { type } from 'arktype'
import fc from 'fast-check'
import * as v from 'valibot'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { type CatalogEvent, defineEvents, event, EventRefusedError } from '../../../src/index.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'
import { describeWithKafka, kafkaBrokers, quietKafka, useFixture } from '../../support/fixture.ts'
import { createTopic, readTopic, type TopicReader } from '../../support/servers/topic-reader.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'

const fixture = useFixture()
/** The same inputs each time; SEED=2 and so on draw others. */
const seed = Number(process.env['SEED'] ?? 1)

const zodSchema = z.object({
  id: z.string().trim().min(1),
  items: z.array(z.object({ price: z.coerce.number(), note: z.string().default('none') })),
  at: z.coerce.date().optional(),
})
const valibotSchema = v.object({
  id: v.union([v.number(), v.pipe(v.string(), v.minLength(1))]),
  tags: v.optional(v.record(v.string(), v.boolean()), { none: true }),
})
const arktypeSchema = type({ id: 'string.integer.parse', 'maybe?': 'string | null' })

const events = defineEvents({
  ZodEvent: event({ schema: zodSchema, aggregate: 'zod', key: (e) => e.id }),
  ValibotEvent: event({ schema: valibotSchema, aggregate: 'valibot', key: (e) => e.id }),
  ArktypeEvent: event({ schema: arktypeSchema, aggregate: 'arktype', key: (e) => e.id }),
})
type AnyEvent = CatalogEvent<typeof events>
type Output = { id: unknown } | undefined

/** Undefined where the validator refuses. */
const oracles: Record<AnyEvent['type'], (payload: unknown) => Output> = {
  ZodEvent: (payload) => zodSchema.safeParse(payload).data,
  ValibotEvent(payload) {
    const { success, output } = v.safeParse(valibotSchema, payload)
    return success ? output : undefined
  },
  ArktypeEvent(payload) {
    const output = arktypeSchema(payload)
    return output instanceof type.errors ? undefined : output
  },
}

const text = fc.oneof(
  { weight: 8, arbitrary: fc.string({ unit: 'grapheme', minLength: 1 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
  { weight: 1, arbitrary: fc.constantFrom('', '\u0000', '__proto__', 'constructor') },
)
/** Mostly what the schema asks for; now and then something else. */
const mostly = (right: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 12, arbitrary: right }, { weight: 1, arbitrary: fc.jsonValue() })
const payloadWith = (optional: Record<string, fc.Arbitrary<unknown>>, id: fc.Arbitrary<unknown>) =>
  mostly(fc.record({ id: mostly(id), ...optional }, { requiredKeys: ['id'] }))

const price = fc.oneof(fc.double(), fc.integer(), fc.integer().map(String))
const item = fc.record({ price: mostly(price), note: mostly(text) }, { requiredKeys: ['price'] })
const payloads: Record<AnyEvent['type'], fc.Arbitrary<unknown>> = {
  ZodEvent: payloadWith(
    {
      items: fc.oneof({ weight: 9, arbitrary: fc.array(item) }, fc.jsonValue()),
      at: mostly(fc.oneof(fc.date({ noInvalidDate: true }), fc.integer())),
      more: fc.jsonValue(),
    },
    text,
  ),
  ValibotEvent: payloadWith(
    { tags: fc.dictionary(text, mostly(fc.boolean())) },
    fc.oneof(text, fc.integer()),
  ),
  ArktypeEvent: payloadWith(
    { maybe: mostly(fc.option(text)), more: fc.jsonValue() },
    fc.integer().map(String),
  ),
}
const drawn = fc.oneof(
  ...Object.entries(payloads).map(([name, payload]) =>
    fc.record({ type: fc.constant(name), payload }),
  ),
) as fc.Arbitrary<AnyEvent>

describeWithKafka('a payload of any kind', () => {
  const topic = uniqueName('validated')
  let reader: TopicReader
  beforeAll(async () => {
    await createTopic(kafkaBrokers(), topic)
    reader = await readTopic(kafkaBrokers(), topic)
  })
  afterAll(() => reader.stop())

  it('arrives as its schema answered it, or is refused', { timeout: 180_000 }, async () => {
    const publisher = kafkaPublisher({ kafka: quietKafka(kafkaBrokers()) })
    const outbox = fixture.outbox({ publisher, topic, events })
    const tally = { arrived: 0, invalid: 0 }

    const emitAlone = async (given: AnyEvent) => {
      try {
        return { id: await outbox.withOutbox((_, emit) => emit(given)) }
      } catch (error) {
        if (error instanceof EventRefusedError) return { code: error.code }
        throw error
      }
    }

    const property = fc.asyncProperty(
      fc.array(drawn, { minLength: 1, maxLength: 30, size: 'max' }),
      async (list) => {
        const accepted = new Map<string, NonNullable<Output>>()
        for (const given of list) {
          const output = oracles[given.type](given.payload)
          const { id, code } = { id: undefined, code: undefined, ...(await emitAlone(given)) }
          if (id && output) accepted.set(id, output)
          // What fits its schema may still be nothing that can be stored: a NUL, or NaN.
          const outcome = code && code !== 'PAYLOAD_INVALID' ? 'not storable' : (code ?? 'accepted')
          expect(output ? ['accepted', 'not storable'] : ['PAYLOAD_INVALID']).toContain(outcome)
          tally.invalid += output ? 0 : 1
        }
        expect(await outbox.pollOnce()).toBe(accepted.size)
        const arrived = (await reader.readToEnd()).filter(({ headers }) => {
          return accepted.has(headers['event-id']!)
        })
        expect(arrived).toHaveLength(accepted.size)
        for (const { key, value, headers } of arrived) {
          const output = accepted.get(headers['event-id']!)!
          expect(value).toBe(JSON.stringify(output))
          expect(key).toBe(String(output.id))
        }
        tally.arrived += arrived.length
      },
    )
    await fc.assert(property, { seed, numRuns: 30, interruptAfterTimeLimit: 120_000 })
    // Both kinds were there, or this proves little.
    expect(tally.arrived).toBeGreaterThan(100)
    expect(tally.invalid).toBeGreaterThan(50)
  })
})
