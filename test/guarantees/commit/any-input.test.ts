// Whatever is emitted: what is accepted comes out of Kafka equal, and what is not is refused at emit with a
// code, and leaves nothing behind. The inputs are drawn by fast-check, odd ones first.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createOutbox, type NewEvent, OutboxError, OutboxOptionsError } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'
import { describeWithKafka, kafkaBrokers, quietKafka, useFixture } from '../../support/fixture.ts'
import { createTopic, readTopic, type TopicReader } from '../../support/servers/topic-reader.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'

const fixture = useFixture()
/** The same inputs each time; SEED=2 and so on draw others. */
const seed = Number(process.env['SEED'] ?? 1)
const REFUSALS = new Set<string>(['EVENT_INVALID', 'PAYLOAD_NOT_JSON', 'PAYLOAD_TOO_LARGE'])

/** Any Unicode; now and then empty, long, or with what Postgres cannot store. */
const text = fc.oneof(
  { weight: 30, arbitrary: fc.string({ unit: 'grapheme', minLength: 1 }) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary' }) },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme', minLength: 200, maxLength: 600 }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom('\u0000', '\ud800', '__proto__', "'; drop table outbox;--"),
  },
)
const payload = fc.oneof(
  { weight: 12, arbitrary: fc.jsonValue({ maxDepth: 5 }) },
  {
    weight: 3,
    arbitrary: fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
      withUnicodeString: true,
    }),
  },
  { weight: 1, arbitrary: fc.constantFrom('x'.repeat(300_000), 'é'.repeat(600_000)) },
)
const event = fc.record(
  {
    type: text,
    aggregateType: text,
    aggregateId: fc.oneof(text, fc.double(), fc.maxSafeInteger(), fc.bigInt()),
    payload,
    headers: fc.dictionary(
      text,
      fc.oneof({ weight: 50, arbitrary: text }, fc.anything() as fc.Arbitrary<string>),
    ),
    correlationId: text,
  },
  { requiredKeys: ['type', 'aggregateType', 'aggregateId', 'payload'] },
)

describeWithKafka('an event of any kind', () => {
  const topic = uniqueName('any')
  let reader: TopicReader
  beforeAll(async () => {
    await createTopic(kafkaBrokers(), topic)
    reader = await readTopic(kafkaBrokers(), topic)
  })
  afterAll(() => reader.stop())

  it('comes out of Kafka equal, or is refused with a code', { timeout: 180_000 }, async () => {
    const publisher = kafkaPublisher({ kafka: quietKafka(kafkaBrokers()) })
    const outbox = fixture.outbox({ publisher, topic, batchSize: 1_000 })
    const tally = { accepted: 0, refused: 0 }

    const emitAlone = async (given: NewEvent) => {
      try {
        return await outbox.withOutbox(async (_, emit) => emit(given))
      } catch (error) {
        if (error instanceof OutboxError && REFUSALS.has(error.code)) return null
        throw error
      }
    }

    const property = fc.asyncProperty(
      fc.array(event, { minLength: 1, maxLength: 30, size: 'max' }),
      async (events) => {
        const accepted = new Map<string, NewEvent>()
        for (const given of events) {
          const id = await emitAlone(given)
          if (id) accepted.set(id, given)
        }
        tally.accepted += accepted.size
        tally.refused += events.length - accepted.size
        // One row for each that was accepted, none for those that were not.
        expect(await outbox.pollOnce()).toBe(accepted.size)
        expect((await fixture.rows()).every(({ status }) => status === 'published')).toBe(true)
        const arrived = (await reader.readToEnd()).filter(({ headers }) => {
          return accepted.has(headers['event-id']!)
        })
        expect(arrived).toHaveLength(accepted.size)
        for (const { key, value, headers } of arrived) {
          const given = accepted.get(headers['event-id']!)!
          expect(key).toBe(String(given.aggregateId))
          expect(value).toBe(JSON.stringify(given.payload))
          expect(headers).toMatchObject({
            ...given.headers,
            ...(given.correlationId === undefined ? {} : { 'correlation-id': given.correlationId }),
            'event-type': given.type,
            'aggregate-type': given.aggregateType,
            'aggregate-id': String(given.aggregateId),
          })
        }
      },
    )
    await fc.assert(property, { seed, numRuns: 40, interruptAfterTimeLimit: 120_000 })
    // Both kinds were there, or this proves little.
    expect(tally.accepted).toBeGreaterThan(50)
    expect(tally.refused).toBeGreaterThan(50)
  })
})

it('works under any name of schema and table, or refuses it', { timeout: 120_000 }, async () => {
  const publisher = handlersPublisher({ handlers: { OrderCompleted: () => {} } })
  const name = fc.oneof(
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }),
    fc.string({ unit: 'binary', maxLength: 80 }),
    fc.constantFrom(
      'a"b',
      "a'b",
      'a.b',
      'a b',
      '*/ drop schema public; --',
      '$1',
      '${x}',
      'PUBLIC',
      '/*',
    ),
  )
  const property = fc.asyncProperty(name, name, async (schema, table) => {
    let outbox
    try {
      outbox = createOutbox({ db: fixture.db, publisher, schema, table, migrate: true })
    } catch (error) {
      if (error instanceof OutboxOptionsError) return
      throw error
    }
    // Postgres keeps these for itself.
    if (/^pg_/i.test(schema)) return
    await outbox.migrate()
    await outbox.withOutbox(async (_, emit) => {
      emit({ type: 'OrderCompleted', aggregateType: 'order', aggregateId: 1, payload: 1 })
    })
    expect(await outbox.pollOnce()).toBe(1)
    expect(await outbox.deadLetters.list()).toEqual([])
    expect(await outbox.purge()).toBe(0)
    expect((await outbox.stats()).pending.count).toBe(0)
    await outbox.stop()
  })
  await fc.assert(property, { seed, numRuns: 60 })
  expect(await fixture.rows()).toEqual([])
})
