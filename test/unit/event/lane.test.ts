import { describe, expect, it } from 'vitest'
import { laneByEvent, laneOf, type OrderScopes } from '../../../src/event/lane.ts'
import { EVERY_TOPIC, orderScopes, routerPublisher } from '../../../src/publishers/router.ts'
import { acked, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'

const publisherWith = (orderScope?: 'topic' | 'publisher') => ({
  ...scriptedPublisher(acked),
  ...(orderScope && { orderScope }),
})
const { destinations } = routerPublisher({
  publishers: {
    kafka: publisherWith('topic'),
    rabbit: publisherWith('publisher'),
    own: publisherWith(),
  },
  routes: { a: 'kafka', b: 'kafka', c: 'rabbit', d: 'rabbit', e: 'own' },
  otherwise: 'own',
})
const scopes = orderScopes(destinations)
const lane = (topic: string, aggregateId = 'one', aggregateType = 'order') =>
  laneOf(outboxEvent({ topic, aggregateId, aggregateType }), scopes)

describe('one lane per aggregate and order scope', () => {
  it('is the same for two events of an aggregate on one topic', () => {
    expect(lane('a')).toBe(lane('a'))
  })

  it('differs between topics whose publisher orders within a topic', () => {
    expect(lane('a')).not.toBe(lane('b'))
  })

  it('spans the topics of a publisher that orders across them, as one does that does not say', () => {
    expect(lane('c')).toBe(lane('d'))
    expect(lane('e')).toBe(lane('anything else'))
  })

  it('differs between publishers and between aggregates', () => {
    expect(
      new Set([lane('c'), lane('e'), lane('c', 'two'), lane('c', 'one', 'invoice')]).size,
    ).toBe(4)
  })

  it('keeps aggregates apart whose parts join to the same text', () => {
    expect(lane('c', 'b:c', 'a')).not.toBe(lane('c', 'c', 'a:b'))
  })

  it('is a number that JavaScript, JSON and Postgres hold exactly', () => {
    const lanes = Array.from({ length: 1_000 }, (_, n) => lane('a', String(n)))
    expect(lanes.every((one) => Number.isSafeInteger(one) && one >= 0)).toBe(true)
    expect(new Set(lanes).size).toBe(1_000)
  })
})

it('does not change when a router is put around a publisher that takes all other topics', () => {
  const publisher = publisherWith()
  const alone = orderScopes([{ name: 'rabbitmq', publisher, topics: EVERY_TOPIC }])
  const others = { own: publisherWith() }
  const routed = routerPublisher({
    publishers: { rabbit: publisher, ...others },
    routes: { e: 'own' },
    otherwise: 'rabbit',
  })
  const laneIn = (own: OrderScopes, topic: string) =>
    laneOf(outboxEvent({ topic, aggregateId: 'one' }), own)
  const inRouter = orderScopes(routed.destinations)
  expect(laneIn(inRouter, 'a')).toBe(laneIn(alone, 'a'))
  expect(laneIn(inRouter, 'e')).not.toBe(laneIn(alone, 'e'))
})

it('gives each event its own lane where order is given up', () => {
  const [one, other] = [outboxEvent({ aggregateId: 'one' }), outboxEvent({ aggregateId: 'one' })]
  expect(laneOf(one, null)).not.toBe(laneOf(other, null))
  expect(laneOf(one, null)).toBe(laneByEvent(one))
})
