// aftercommit/testing under Jest, from CommonJS: matchers, drain, a transaction that is rolled back.
const { createOutbox } = require('aftercommit')
const { postgresJs } = require('aftercommit/postgres-js')
const { drain, outboxMatchers, recordingPublisher, rolledBack } = require('aftercommit/testing')
const postgres = require('postgres')

expect.extend(outboxMatchers)
jest.setTimeout(60_000)

const sql = postgres(process.env.DATABASE_URL, { max: 3, onnotice: () => {} })
const db = postgresJs(sql)
const publisher = recordingPublisher()
const outbox = createOutbox({ db, publisher })
const place = (one) =>
  one.withOutbox((_, emit) => {
    for (const type of ['OrderPlaced', 'OrderPaid'])
      emit({ type, aggregateType: 'order', aggregateId: '4711', payload: { total: 42 } })
  })

beforeAll(() => outbox.migrate())
afterEach(() => publisher.clear())
afterAll(() => sql.end())

test('the matchers pass', async () => {
  await place(outbox)
  expect(publisher).toHavePublishedNothing()
  await drain(outbox)
  expect(publisher).toHavePublishedTimes(2)
  expect(publisher).toHavePublished({ type: 'OrderPaid', payload: { total: 42 } })
  expect(publisher).toHavePublished({ payload: expect.objectContaining({ total: 42 }) })
  expect(publisher).toHavePublishedInOrder([{ type: 'OrderPlaced' }, { type: 'OrderPaid' }])
  expect(publisher).not.toHavePublishedNothing()
  expect(publisher).not.toHavePublished({ payload: { total: 43 } })
})

test('the matchers fail, and say what was published', async () => {
  await place(outbox)
  await drain(outbox)
  const failing = [
    () => expect(publisher).toHavePublishedNothing(),
    () => expect(publisher).toHavePublishedTimes(1),
    () => expect(publisher).toHavePublished({ type: 'OrderShipped' }),
    () =>
      expect(publisher).toHavePublishedInOrder([{ type: 'OrderPaid' }, { type: 'OrderPlaced' }]),
    () => expect(publisher).not.toHavePublished({ aggregateId: '4711' }),
  ]
  for (const check of failing) expect(check).toThrow(/Published:\n\s+OrderPlaced/)
})

test('a transaction is rolled back', async () => {
  const before = await sql`select count(*)::int from outbox`
  await rolledBack(db, async (inside) => {
    const one = createOutbox({ db: inside, publisher })
    await place(one)
    await drain(one)
  })
  expect(publisher).toHavePublishedTimes(2)
  expect(await sql`select count(*)::int from outbox`).toEqual(before)
})
