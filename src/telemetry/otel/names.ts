// Every name that OpenTelemetry's semantic conventions define and we use, as of version 1.45.0 of the conventions, which
// renamed `messaging.system` and `messaging.kafka.*`. They are copied, because the messaging conventions are not stable: a
// test compares them with @opentelemetry/semantic-conventions. Names of our own begin with `aftercommit`.

export const CONVENTIONS_VERSION = '1.45.0'
export const SCHEMA_URL = `https://opentelemetry.io/schemas/${CONVENTIONS_VERSION}`

export const ATTRIBUTES = {
  system: 'messaging.system.name',
  operationName: 'messaging.operation.name',
  operationType: 'messaging.operation.type',
  destination: 'messaging.destination.name',
  partition: 'messaging.destination.partition.id',
  batchCount: 'messaging.batch.message_count',
  messageId: 'messaging.message.id',
  kafkaOffset: 'kafka.offset',
  errorType: 'error.type',
} as const

/** Values of `messaging.operation.type`. The operations have the same names. */
export const OPERATIONS = { create: 'create', send: 'send', process: 'process' } as const

export const METRIC_NAMES = {
  sentMessages: 'messaging.client.sent.messages',
  operationDuration: 'messaging.client.operation.duration',
  processDuration: 'messaging.process.duration',
} as const

/** What the conventions advise for the durations, in seconds. */
export const DURATION_BUCKETS = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
]

export const OWN_ATTRIBUTES = {
  eventType: 'aftercommit.event.type',
  publisher: 'aftercommit.publisher',
  path: 'aftercommit.path',
  consumer: 'aftercommit.inbox.consumer',
  outcome: 'aftercommit.inbox.outcome',
} as const
