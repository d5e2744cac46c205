import { expect, it } from 'vitest'
import { classifyKafkaError } from '../../../../src/publishers/kafka/errors.ts'

const protocolError = (type: string) => Object.assign(new Error('from the broker'), { type })

it.each([
  'MESSAGE_TOO_LARGE',
  'RECORD_LIST_TOO_LARGE',
  'INVALID_TOPIC_EXCEPTION',
  'TOPIC_AUTHORIZATION_FAILED',
  'CLUSTER_AUTHORIZATION_FAILED',
  'INVALID_RECORD',
  'UNSUPPORTED_FOR_MESSAGE_FORMAT',
])('blames the message for %s', (type) => {
  expect(classifyKafkaError('orders', protocolError(type))).toMatchObject({
    kind: 'permanent',
    error: {
      code: 'PUBLISH_FAILED',
      message: `Kafka refused an event for the topic 'orders': ${type}`,
    },
  })
})

it.each([
  'UNKNOWN_TOPIC_OR_PARTITION',
  'LEADER_NOT_AVAILABLE',
  'NOT_LEADER_FOR_PARTITION',
  'NOT_ENOUGH_REPLICAS',
  'NOT_ENOUGH_REPLICAS_AFTER_APPEND',
  'INVALID_TIMESTAMP',
])('takes %s for trouble of one topic', (type) => {
  expect(classifyKafkaError('orders', protocolError(type))).toMatchObject({
    kind: 'transient',
    blames: 'topic',
  })
})

it('takes everything else for trouble of the broker', () => {
  for (const error of [protocolError('REQUEST_TIMED_OUT'), new Error('ECONNREFUSED')]) {
    expect(classifyKafkaError('orders', error)).toMatchObject({
      kind: 'transient',
      blames: 'broker',
    })
  }
})

it('finds the word of the broker however deep kafkajs wrapped it', () => {
  const wrapped = new Error('retries', {
    cause: new Error('number', { cause: protocolError('MESSAGE_TOO_LARGE') }),
  })
  expect(classifyKafkaError('orders', wrapped)).toMatchObject({
    kind: 'permanent',
    error: { cause: wrapped },
  })
})

it('never repeats a message that kafkajs printed in its error', () => {
  const { error } = classifyKafkaError(
    'orders',
    new TypeError('Invalid message without value: {"hunter2"}'),
  )
  expect(error.message).toBe('TypeError')
})
