// The public API, in the order in which an event travels.
export { createOutbox, type Outbox } from './outbox.ts'
export { DEFAULTS, type OutboxOptions } from './options.ts'
export type { Duration } from './duration.ts'
export type { Schedule } from './schedule.ts'
export type { Logger } from './logger.ts'
export type { TopicRule, TopicTable } from './topics.ts'
export type { EventDetails, EventRef, NewEvent, OutboxEvent } from './events.ts'
export {
  defineEvents,
  event,
  type EmittedPayload,
  type EventCatalog,
  type EventDeclaration,
  type EventName,
  type PlainEvent,
  type ReceivedPayload,
  type SchemaEvent,
} from './catalog.ts'
export type { StandardSchema } from './standard-schema.ts'
export type {
  AnyDatabase,
  Database,
  DrizzleDatabase,
  TransactionOf,
  TransactionSettings,
} from './drivers/driver.ts'
export type { CatalogEmit, CatalogEvent, Emit, EmitOf } from './emit.ts'
export type { UnitOfWorkOptions } from './unit-of-work.ts'
export type { DeadLetterListing, DeadLetters, DeadLetterSelection } from './dead-letters.ts'
export type { HealthFlag, HealthLimits, OutboxHealth, OutboxStats } from './health.ts'
export type { Count, DeadLetter, DeadLetterFilter, Latency, TableStats } from './store/store.ts'
export {
  routerPublisher,
  type RoutedPublisher,
  type RouterPublisher,
  type RouterPublisherOptions,
  type TopicScope,
} from './publishers/router.ts'
export type {
  FailureKind,
  Publisher,
  PublishFailure,
  PublishResult,
  PublishRules,
  PublishSuccess,
} from './publishers/publisher.ts'
export type { Envelope } from './envelope/envelope.ts'
export { cloudEvents, type CloudEvents, type CloudEventsOptions } from './envelope/cloud-events.ts'
export type { EventSerializer, Serialized, SerializedMessage } from './envelope/serializer.ts'
export type {
  Circuit,
  Dead,
  Failed,
  LifecycleEvents,
  OutboxEvents,
  Path,
  Published,
} from './lifecycle.ts'
export {
  ERROR_CODES,
  EventRefusedError,
  OutboxError,
  type OutboxErrorCode,
  OutboxOptionsError,
  PublishError,
  StoreError,
  UnreadableMessageError,
} from './errors.ts'
