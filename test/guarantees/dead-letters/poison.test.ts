// A message that can never be delivered becomes a dead letter at once, while its neighbours go out once.
import { describe, expect, it } from 'vitest'
import { describeWithKafka, kafkaBrokers, useFixture } from '../../support/fixture.ts'
import { kafkaClients } from '../../support/kafka-clients.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { createTopic, readTopic } from '../../support/servers/topic-reader.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()

describeWithKafka('a message too large for the broker', () => {
  describe.each(kafkaClients)('with $title', ({ publisher }) => {
    it.each(['immediate', 'fallback'])('is dead at once on the %s path, alone', async (path) => {
      const topic = uniqueName('poison')
      await createTopic(kafkaBrokers(), topic)
      const outbox = fixture.outbox({
        publisher: publisher(kafkaBrokers()),
        topic,
        maxPayloadBytes: 2_000_000,
        immediate: path === 'immediate',
        poller: true,
        pollInterval: '50ms',
        threshold: '10s',
        publishTimeout: '5s',
      })
      await outbox.start()
      await outbox.withOutbox(async (_, emit) => {
        const events = Array.from({ length: 20 }, (__, n) => newEvent({ payload: n }))
        emit([...events, newEvent({ payload: 'x'.repeat(1_500_000) }), ...events.map(copy)])
      })
      await waitUntil(async () => (await fixture.rows()).every((row) => row.status !== 'pending'), {
        message: 'every event has its outcome',
      })
      const rows = await fixture.rows()
      expect(rows.filter((row) => row.status === 'published')).toHaveLength(40)
      expect(rows.filter((row) => row.status === 'dead_letter')).toMatchObject([
        { seq: rows[20]!.seq, attempts: 1, last_error: expect.stringMatching(/MESSAGE_TOO_LARGE/) },
      ])
      const reader = await readTopic(kafkaBrokers(), topic)
      const ids = (await reader.readToEnd()).map(({ headers }) => headers['event-id'])
      await reader.stop()
      expect(ids).toHaveLength(40)
      expect(new Set(ids).size).toBe(40)
    })
  })
})

const copy = (event: ReturnType<typeof newEvent>) => ({ ...event })

it.each([
  ['an object without text', () => Object.create(null) as object],
  [
    'an error that cannot be read',
    () =>
      Object.defineProperty(new Error(), 'message', {
        get() {
          throw new Error('no')
        },
      }),
  ],
])('lets a handler that throws %s fail alone', async (_, thrown) => {
  const outbox = fixture.handling(
    {
      Bad: () => {
        throw thrown()
      },
      Good: () => {},
    },
    { maxAttempts: 1 },
  )
  const opened: unknown[] = []
  outbox.events.on('circuit:open', (circuit) => opened.push(circuit))
  await outbox.start()
  await outbox.withOutbox(async (__, emit) => {
    emit([newEvent({ type: 'Bad' }), newEvent({ type: 'Good' })])
  })
  await waitUntil(async () => (await fixture.rows()).every((row) => row.status !== 'pending'), {
    message: 'every event has its outcome',
  })
  expect(await fixture.rows()).toMatchObject([
    { event_type: 'Bad', status: 'dead_letter', attempts: 1 },
    { event_type: 'Good', status: 'published' },
  ])
  expect(opened).toEqual([])
})
