// The types of envelopes, checked by tsc as part of `npm run check`; vitest runs this file for its form only.
import { expectTypeOf, it } from 'vitest'
import {
  cloudEvents,
  type Envelope,
  type EventSerializer,
  type OutboxEvent,
} from '../../src/index.ts'
import { kafkaPublisher } from '../../src/publishers/kafka/kafka-publisher.ts'
import { rabbitmqPublisher } from '../../src/publishers/rabbitmq/rabbitmq-publisher.ts'

it('takes the same envelopes on every broker, and no others', () => {
  const check = () => {
    const producer = { sendBatch: async () => [] }
    const url = 'amqp://localhost'
    kafkaPublisher({ producer, envelope: 'json' })
    rabbitmqPublisher({ url, envelope: cloudEvents({ source: '/shop', mode: 'structured' }) })
    kafkaPublisher({ producer, envelope: async ({ payload }) => Buffer.from(payload) })
    rabbitmqPublisher({ url, envelope: () => ({ value: new Uint8Array(1), headers: { a: 'b' } }) })
    // @ts-expect-error there is no such envelope
    kafkaPublisher({ producer, envelope: 'avro' })
    // @ts-expect-error it has to be called
    kafkaPublisher({ producer, envelope: cloudEvents })
    // @ts-expect-error a number is no value
    rabbitmqPublisher({ url, envelope: () => 7 })
    // @ts-expect-error headers are texts
    rabbitmqPublisher({ url, envelope: () => ({ value: '', headers: { attempt: 1 } }) })
    // @ts-expect-error a CloudEvent has to come from somewhere
    cloudEvents({ mode: 'binary' })
  }
  expectTypeOf(check).toBeFunction()
  expectTypeOf<Parameters<EventSerializer>[0]>().toEqualTypeOf<OutboxEvent>()
  expectTypeOf<EventSerializer>().toExtend<Envelope>()
})
