// The public API, in the order in which an event travels.
export { createOutbox, type Outbox } from './outbox.ts'
export { DEFAULTS, type OutboxOptions } from './options/options.ts'
export type { Duration } from './checks/duration.ts'
export type { Schedule } from './checks/schedule.ts'
export type { Logger } from './runtime/logger.ts'
export type { TopicRule, TopicTable } from './event/topic.ts'
export type { EventDetails, EventRef, NewEvent, OutboxEvent } from './event/event.ts'
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
} from './event/catalog.ts'
export type { StandardSchema } from './event/standard-schema.ts'
export type {
  AnyDatabase,
  Database,
  DrizzleDatabase,
  HandleOf,
  TransactionOf,
  TransactionSettings,
} from './drivers/driver.ts'
export type { OwnTransaction } from './drivers/own-transaction.ts'
export type {
  CatalogEmit,
  CatalogEmitIn,
  CatalogEvent,
  Emit,
  EmitIn,
  EmitInOf,
  EmitOf,
} from './event/emit.ts'
export type { MigrateOptions } from './store/migrate.ts'
export type { UnitOfWorkOptions } from './unit-of-work/unit-of-work.ts'
export type { DeadLetterListing, DeadLetters, DeadLetterSelection } from './upkeep/dead-letters.ts'
export type { HealthFlag, HealthLimits, OutboxHealth, OutboxStats } from './upkeep/health.ts'
export type {
  Count,
  DeadLetter,
  DeadLetterFilter,
  Latency,
  TableStats,
} from './store/outbox/outbox-store.ts'
export {
  routerPublisher,
  type RoutedPublisher,
  type RouterPublisher,
  type RouterPublisherOptions,
  type TopicSelection,
} from './publishers/router.ts'
export type { OrderScope, Publisher, PublishRules } from './publishers/publisher.ts'
export type {
  FailureKind,
  PublishFailure,
  PublishResult,
  PublishSuccess,
} from './event/publish-result.ts'
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
  PollDone,
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
