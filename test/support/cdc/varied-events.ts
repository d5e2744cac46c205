// Events of every kind that can differ between two relays: payloads, keys, headers and times.
import type { NewEvent } from '../../../src/index.ts'

const PAYLOADS: readonly unknown[] = [
  { total: 42, lines: [{ sku: 'a-1', count: 2 }], note: null },
  null,
  'text with "quotes", \\ and a line\nbreak',
  -0.5,
  9007199254740991,
  [],
  {},
  true,
  { emoji: '👩‍🚀', umlauts: 'äöüß', chinese: '订单', escaped: '\u0001\u2028' },
  { bulk: 'x'.repeat(20_000) },
]

const HEADERS: readonly Partial<NewEvent>[] = [
  {},
  { headers: { tenant: 'acme' } },
  { correlationId: 'request-7' },
  { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
  { headers: { Mixed: 'Case', unicode: 'ä 👩‍🚀', empty: '', id: 'not the id of the event' } },
]

const TIMES: readonly Partial<NewEvent>[] = [
  {},
  { occurredAt: new Date('2026-01-02T03:04:05.678Z') },
  { occurredAt: new Date('2026-01-02T03:04:05.000Z') },
  { occurredAt: new Date('2026-01-02T03:04:05.120Z') },
  { occurredAt: new Date('1969-12-31T23:59:59.999Z') },
]

const KEYS = ['order-1', '42', 'ключ', 'a key with spaces', 'k'.repeat(300)]

/** The n-th event for these topics. Neighbours differ in everything. */
export function variedEvent(n: number, topics: readonly string[]): NewEvent {
  const pick = <T>(list: readonly T[], step: number) => list[Math.floor(n / step) % list.length]!
  return {
    type: n % 3 === 0 ? 'OrderCompleted' : 'Ordered.v2 €',
    aggregateType: n % 7 === 0 ? 'invoice' : 'order',
    aggregateId: n % 2 === 0 ? `order-${n % 97}` : pick(KEYS, 2),
    topic: pick(topics, 1),
    payload: pick(PAYLOADS, 1),
    ...pick(HEADERS, PAYLOADS.length),
    ...pick(TIMES, 3),
  }
}
