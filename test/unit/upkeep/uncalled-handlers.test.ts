// createOutbox() warns of handlers whose event type goes to another publisher, and of no others.
import pg from 'pg'
import { expect, it } from 'vitest'
import { nodePostgres } from '../../../src/drivers/node-postgres.ts'
import {
  createOutbox,
  defineEvents,
  event,
  type EventCatalog,
  type OutboxOptions,
  routerPublisher,
} from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { recordingPublisher } from '../../../src/testing/testing.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'

const of = { key: () => 'one' }
const events = defineEvents({
  MailWanted: event<object>({ ...of, aggregate: 'order', topic: 'mail' }),
  OrderPlaced: event<object>({ ...of, aggregate: 'order' }),
})
const handlersOf = (...types: string[]) =>
  handlersPublisher({ handlers: Object.fromEntries(types.map((type) => [type, () => {}])) })

/** What is warned of. Kafka has every topic but `mail` and `sms`. */
function warnings(options: Pick<OutboxOptions, 'topic'> & { events?: EventCatalog }) {
  const logger = recordingLogger()
  const publisher = routerPublisher({
    publishers: {
      kafka: recordingPublisher(),
      mails: handlersOf('MailWanted', 'OrderPlaced', 'DeadLettered'),
      texts: handlersOf('OrderPlaced'),
    },
    routes: { mail: 'mails', sms: 'texts' },
    otherwise: 'kafka',
  })
  createOutbox({ db: nodePostgres(new pg.Pool()), publisher, logger, ...options })
  return logger.lines.map(({ level, fields, message }) => {
    expect(level).toBe('warn')
    expect(message).toMatch(/not called.*give the type a topic/)
    return fields
  })
}

it.each([
  ['a catalog, by the aggregate', { events }, 'order', 'kafka', 2],
  ['a catalog, by the one topic', { events, topic: 'all' }, 'all', 'kafka', 2],
  ['a table that names the type', { topic: { byType: { OrderPlaced: 'o' } } }, 'o', 'kafka', 2],
  ['a topic of other handlers', { topic: { byType: { OrderPlaced: 'sms' } } }, 'sms', 'texts', 1],
])('warns where the topic is known from %s', (_, options, topic, publisher, times) => {
  const warning = { type: 'OrderPlaced', topic, publisher }
  expect(warnings(options)).toEqual(Array.from({ length: times }, () => warning))
})

it.each([
  ['a function', { topic: () => 'orders' }],
  ['one topic that an event may replace', { topic: 'orders' }],
  ['the aggregate', {}],
  ['a table by aggregate', { topic: { byAggregate: { order: 'orders' } } }],
])('does not warn where the topic is known only with an event, from %s', (_, options) => {
  expect(warnings(options)).toEqual([])
})
