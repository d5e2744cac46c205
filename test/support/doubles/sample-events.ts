// Events for tests that care about one field and not about the rest.
import { uniqueName } from './unique-name.ts'
import type { NewEvent, OutboxEvent } from '../../../src/event/event.ts'
import { laneOf, type OrderScopes } from '../../../src/event/lane.ts'
import type { EventRules } from '../../../src/event/prepare.ts'

export function newEvent(overrides: Partial<NewEvent> = {}): NewEvent {
  return {
    type: 'OrderCompleted',
    aggregateType: 'order',
    aggregateId: uniqueName('order'),
    payload: { total: 42 },
    ...overrides,
  }
}

/** As for one publisher whose consumers see an order across all of its topics. */
const orderScopes: OrderScopes = { byTopic: new Map(), otherwise: 'publisher' }

export function outboxEvent(overrides: Partial<OutboxEvent> = {}): OutboxEvent {
  const named = {
    id: crypto.randomUUID(),
    aggregateType: 'order',
    aggregateId: uniqueName('order'),
    topic: 'orders',
    ...overrides,
  }
  return {
    ...named,
    type: 'OrderCompleted',
    lane: laneOf(named, orderScopes),
    payload: '{"total":42}',
    headers: {},
    occurredAt: new Date('2026-01-02T03:04:05.678Z'),
    leasedAt: new Date(),
    maxAttempts: 10,
    attempts: 0,
    seq: 1,
    ...overrides,
  }
}

export const lenientRules: EventRules = {
  topic: undefined,
  routedTopics: null,
  orderScopes,
  maxPayloadBytes: 1_000_000,
  maxAttempts: 10,
  maxAttemptsByType: {},
}
