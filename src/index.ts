// The public API, in the order in which an event travels.
export { createOutbox, type DrainOptions, type FlushOptions, type Outbox } from './outbox.ts'
export { type CdcOutboxOptions, DEFAULTS, type OutboxOptions } from './options/options.ts'
export type { Duration } from './checks/duration.ts'
export type { Schedule } from './checks/schedule.ts'
export type { Logger } from './runtime/logger.ts'
export type { TopicRule, TopicTable } from './event/topic.ts'
export type { EventHead, PayloadHook, PayloadHooks } from './event/stored-payload.ts'
export type { EventDetails, EventRef, EventStatus, NewEvent, OutboxEvent } from './event/event.ts'
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
  Executor,
  HandleOf,
  Marked,
  OpenTransaction,
  QueryOptions,
  TransactionOf,
  TransactionSettings,
  TransactionWatch,
} from './drivers/driver.ts'
export type { Statement } from './drivers/sql.ts'
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
export type { Scheduled } from './unit-of-work/scheduled.ts'
export type { UnitOfWorkOptions } from './unit-of-work/unit-of-work.ts'
export type { DrainResult } from './delivery/delivery.ts'
export type { FlushResult, LeftReason } from './delivery/flush.ts'
export type { DeadLetterListing, DeadLetters, DeadLetterSelection } from './upkeep/dead-letters.ts'
export type { DoneBy } from './upkeep/done-by.ts'
export type { PauseDetails } from './upkeep/pause-desk.ts'
export type { RedactDetails, RedactResult, RedactSelection } from './upkeep/redact.ts'
export type { RerouteResult } from './upkeep/reroute.ts'
export type {
  FailureCounting,
  FailureGroupListing,
  Failures,
  FailureSelection,
} from './upkeep/failures.ts'
export type { Browse, EventListing, Tail, TailFilter } from './upkeep/browse.ts'
export type { HealthFlag, HealthLimits, OutboxHealth, OutboxStats } from './upkeep/health.ts'
export type {
  Count,
  DeadLetter,
  Latency,
  TableStats,
  TopicBacklog,
} from './store/outbox/outbox-store.ts'
export type {
  DeadLetterFilter,
  FailureFilter,
  FailureGroup,
  FailureStatus,
} from './store/outbox/failure-store.ts'
export type {
  EventAhead,
  EventDetail,
  EventFilter,
  EventPage,
  EventSummary,
} from './store/outbox/browse-store.ts'
export type { Instance, InstanceReport, OpenCircuit, Pause } from './store/outbox/control-store.ts'
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
  Paused,
  PollDone,
  Published,
  Saved,
  StepDone,
} from './lifecycle.ts'
export type {
  CreatedEvent,
  DeliveredEvent,
  Processed,
  PublisherActivity,
  SentBatch,
  Telemetry,
  WatchedOutbox,
} from './telemetry/telemetry.ts'
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
