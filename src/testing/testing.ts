// aftercommit/testing: for tests of applications. Nothing of the library imports it.
export { drain, type TestDrainOptions } from './drain.ts'
export { insideTransaction, rolledBack } from './inside-transaction.ts'
export {
  createOutboxMatchers,
  type ExpectedEvent,
  type MatcherOptions,
  outboxMatchers,
  type OutboxMatchers,
} from './matchers.ts'
export {
  type PublisherFailure,
  type RecordedEvent,
  type RecordingPublisher,
  recordingPublisher,
  type RecordingPublisherOptions,
} from './recording-publisher.ts'
