// Events for tests that care about one field and not about the rest.
import { uniqueName } from './unique-name.ts'
import type { EventRules, NewEvent, OutboxEvent } from '../../src/events.ts'

export function newEvent(overrides: Partial<NewEvent> = {}): NewEvent {
  return {
    type: 'OrderCompleted',
    aggregateType: 'order',
    aggregateId: uniqueName('order'),
    payload: { total: 42 },
    ...overrides,
  }
}

export function outboxEvent(overrides: Partial<OutboxEvent> = {}): OutboxEvent {
  return {
    id: crypto.randomUUID(),
    type: 'OrderCompleted',
    aggregateType: 'order',
    aggregateId: uniqueName('order'),
    topic: 'orders',
    payload: '{"total":42}',
    headers: {},
    occurredAt: new Date('2026-01-02T03:04:05.678Z'),
    maxAttempts: 10,
    attempts: 0,
    seq: 1,
    ...overrides,
  }
}

export const lenientRules: EventRules = {
  topic: undefined,
  routedTopics: null,
  maxPayloadBytes: 1_000_000,
  maxAttempts: 10,
  maxAttemptsByType: {},
}
