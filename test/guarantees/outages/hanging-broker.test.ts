// A broker that hangs: connections stay open, nothing answers. Nobody waits for it, nothing is lost, and
// nothing is sent twice when it wakes up.
import { performance } from 'node:perf_hooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeWithOwnKafka, useFixture } from '../../support/fixture.ts'
import { kafkaClients } from '../../support/kafka-clients.ts'
import { type KafkaServer, startKafka } from '../../support/servers/kafka-server.ts'
import { newEvent, outboxEvent } from '../../support/doubles/sample-events.ts'
import { createTopic, readTopic } from '../../support/servers/topic-reader.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()

/** Long enough for a slow machine to keep its leases and its patience. */
const times = { threshold: '4s', publishTimeout: '2s' } as const

describeWithOwnKafka('a broker that hangs', () => {
  let kafka: KafkaServer
  beforeAll(async () => {
    kafka = await startKafka()
  })
  afterAll(async () => {
    kafka.resume()
    await kafka.stop()
  })

  describe.each(kafkaClients)('with $title', ({ name, publisher: open }) => {
    const publisher = () => open(kafka.brokers)
    const [hanging, away] = [`hanging-${name}`, `away-${name}`]

    it('does not keep the caller waiting, and gets a send slower than the threshold once', async () => {
      await createTopic(kafka.brokers, hanging)
      const outbox = fixture.outbox({ publisher: publisher(), topic: hanging, ...times })
      const other = fixture.outbox({
        publisher: publisher(),
        poller: true,
        pollInterval: '20ms',
        ...times,
      })
      await outbox.start()
      await outbox.withOutbox(async (_, emit) => emit(newEvent({ payload: 'before' })))
      await waitUntil(
        // The first send may take so long that it is given up. Then its circuit is open until the event has gone out.
        async () => {
          await outbox.pollOnce()
          return (await fixture.rows())[0]?.status === 'published'
        },
        { message: 'the connection is warm' },
      )

      kafka.pause()
      const opened = nextEvent(outbox.events, 'circuit:open')
      // The commit comes back although the broker does not answer: otherwise this line would not end.
      await outbox.withOutbox(async (_, emit) => emit(newEvent({ payload: 'during' })))
      expect((await opened).error).toMatchObject({ code: 'PUBLISH_TIMEOUT' })
      await other.start()
      await waitUntil(
        async () => {
          const [row] = await fixture.sql`
          select bool_and(created_at + interval '4 s' < clock_timestamp()) as over from outbox`
          return row?.['over'] as boolean
        },
        { message: 'the send has outlasted the threshold' },
      )
      expect(await fixture.rows()).toMatchObject([
        { status: 'published' },
        { status: 'pending', attempts: 0, available: false },
      ])

      const published = nextEvent(outbox.events, 'event:published')
      kafka.resume()
      expect(await published).toMatchObject({ path: 'immediate' })
      const reader = await readTopic(kafka.brokers, hanging)
      const values = (await reader.readToEnd()).map(({ value }) => value)
      await reader.stop()
      expect(new Set(values)).toEqual(new Set(['"before"', '"during"']))
      expect(values).toHaveLength(2)
    })

    it('gets a send once that it acks in time, behind one that it acks too late', async () => {
      const topic = `late-${name}`
      await createTopic(kafka.brokers, topic)
      const requestMs = 12_000
      const sender = open(kafka.brokers, { requestMs, retries: 0 })
      const [warmUp, late, inTime] = [1, 2, 3].map(() => outboxEvent({ topic, aggregateId: '1' }))
      expect(await sender.publish([warmUp!])).toMatchObject([{ ok: true }])
      kafka.pause()
      const givenUp = sender.publish([late!])
      // Later, so that the broker has time for its answer, and early enough for the same connection.
      const due = performance.now() + requestMs / 2
      await waitUntil(() => performance.now() > due, { message: 'the next send is due' })
      const answered = sender.publish([inTime!])
      expect(await givenUp).toMatchObject([{ ok: false, kind: 'transient' }])
      kafka.resume()
      expect(await answered).toMatchObject([{ ok: true }])
      await sender.disconnect?.()
      const reader = await readTopic(kafka.brokers, topic)
      const ids = (await reader.readToEnd()).map(({ headers }) => headers['event-id'])
      await reader.stop()
      expect(ids.filter((id) => id === inTime!.id)).toHaveLength(1)
    })

    it('starts while the broker is away, saves, and delivers when it is back', async () => {
      await createTopic(kafka.brokers, away)
      await kafka.kill()
      const outbox = fixture.outbox({
        publisher: publisher(),
        topic: away,
        poller: true,
        pollInterval: '100ms',
        ...times,
      })
      await outbox.start()
      const opened = nextEvent(outbox.events, 'circuit:open')
      for (let n = 0; n < 20; n += 1) {
        await outbox.withOutbox(async (_, emit) => {
          emit(newEvent({ aggregateId: `order-${n % 3}`, payload: n }))
        })
      }
      await opened
      await kafka.start()
      await waitUntil(
        async () => (await fixture.rows()).every((row) => row.status === 'published'),
        {
          message: 'everything was published after the outage',
          timeoutMs: 45_000,
        },
      )
      // An outage costs no attempts.
      expect((await fixture.rows()).every((row) => row.attempts === 0)).toBe(true)
      const reader = await readTopic(kafka.brokers, away)
      const values = (await reader.readToEnd()).map(({ value }) => Number(value))
      await reader.stop()
      expect(values.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n))
    })
  })
})
