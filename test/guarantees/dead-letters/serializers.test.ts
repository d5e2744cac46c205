// A serializer that fails is the event's own fault, or an outage of its topic; either way its neighbours go out, and
// what it said of the payload goes nowhere.
import { inspect } from 'node:util'
import { expect, it, describe } from 'vitest'
import type { EventSerializer } from '../../../src/index.ts'
import { describeWithKafka, kafkaBrokers, useFixture } from '../../support/fixture.ts'
import { kafkaClients } from '../../support/kafka-clients.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { createTopic, readTopic } from '../../support/servers/topic-reader.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()

describeWithKafka('a serializer', () => {
  describe.each(kafkaClients)('with $title', ({ publisher: openPublisher }) => {
    async function open(envelope: EventSerializer) {
      const [avro, plain] = [uniqueName('avro'), uniqueName('plain')]
      await Promise.all([avro, plain].map((topic) => createTopic(kafkaBrokers(), topic)))
      const logger = recordingLogger()
      const publisher = openPublisher(kafkaBrokers(), { envelope })
      const outbox = fixture.outbox({ publisher, logger, poller: true, pollInterval: '50ms' })
      await outbox.start()
      return { outbox, logger, avro, plain }
    }
    async function valuesOf(topic: string) {
      const reader = await readTopic(kafkaBrokers(), topic)
      const values = (await reader.readToEnd()).map(({ value }) => value)
      await reader.stop()
      return values
    }
    const settled = async () => (await fixture.rows()).every((row) => row.status !== 'pending')

    it('that throws makes its event a dead letter, and its payload is in no log and no row', async () => {
      const { outbox, logger, avro } = await open(({ type, payload }) => {
        if (type === 'Odd') throw new RangeError(`cannot write ${payload}`)
        return payload
      })
      await outbox.withOutbox(async (_, emit) => {
        const of = (type: string, payload: unknown) =>
          newEvent({ topic: avro, aggregateId: 'one', type, payload })
        emit([of('Even', 1), of('Odd', 'hunter2'), of('Even', 2)])
      })
      await waitUntil(settled, { message: 'every event has its outcome' })
      const rows = await fixture.rows()
      expect(rows).toMatchObject([
        { status: 'published' },
        {
          status: 'dead_letter',
          attempts: 1,
          last_error: expect.stringMatching(/failed with RangeError/),
        },
        { status: 'published' },
      ])
      expect(await valuesOf(avro)).toEqual(['1', '2'])
      expect(rows[1]!.last_error).not.toContain('hunter2')
      expect(inspect(logger.lines, { depth: 9 })).not.toContain('hunter2')
    })

    it('whose registry is away keeps its topic waiting, in order and without attempts, and no other', async () => {
      let away = true
      const { outbox, avro, plain } = await open(async ({ topic, payload }) => {
        if (away && topic.startsWith('avro')) {
          throw Object.assign(new Error('ECONNREFUSED'), { retriable: true })
        }
        return payload
      })
      const opened = nextEvent(outbox.events, 'circuit:open')
      await outbox.withOutbox(async (_, emit) => {
        for (let n = 0; n < 10; n += 1) {
          emit(newEvent({ topic: avro, aggregateId: 'one', payload: n }))
          emit(newEvent({ topic: plain, payload: n }))
        }
      })
      expect(await opened).toMatchObject({ topic: avro })
      await waitUntil(
        async () =>
          (await fixture.rows()).filter(({ status }) => status === 'published').length === 10,
        { message: 'the other topic went out' },
      )
      const waiting = (await fixture.rows()).filter(({ status }) => status === 'pending')
      expect(waiting).toHaveLength(10)
      expect(waiting.every(({ attempts }) => attempts === 0)).toBe(true)
      away = false
      await waitUntil(settled, { message: 'the registry is back' })
      expect(await valuesOf(avro)).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
      expect(await valuesOf(plain)).toHaveLength(10)
    })
  })
})
