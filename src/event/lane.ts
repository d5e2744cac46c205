// The lane of an event. Events of one lane reach their destination in the order in which they were saved; events of
// different lanes have no order, and none waits for another. delivery/order.ts explains how this is upheld.
import { hash } from 'node:crypto'

/** The fields that determine a lane. */
export interface LaneSource {
  readonly id: string
  readonly topic: string
  readonly aggregateType: string
  readonly aggregateId: string
}

/** How far order reaches for each topic. Events of an aggregate are in order among those of the same scope. */
export interface OrderScopes {
  /** The scope of each topic that a router names. */
  readonly byTopic: ReadonlyMap<string, string>
  /** All other topics: each is a scope of its own, or they share one. */
  readonly otherwise: 'topic' | 'publisher'
}

/** One lane per aggregate and order scope. null: no order is kept, and each event has its own lane. */
export function laneOf(event: LaneSource, scopes: OrderScopes | null): number {
  if (scopes === null) return laneByEvent(event)
  const { topic, aggregateType, aggregateId } = event
  const scope = scopes.byTopic.get(topic) ?? scopeOfTopic(topic, scopes.otherwise)
  return toLane(`${scope}\0${aggregateType}\0${aggregateId}`)
}

export function laneByEvent({ id }: Pick<LaneSource, 'id'>): number {
  return toLane(id)
}

/** `name` distinguishes the scopes of several publishers. */
export function scopeOfTopic(topic: string, orderScope: 'topic' | 'publisher', name?: string) {
  if (orderScope === 'topic') return `topic\0${topic}`
  return name === undefined ? 'publisher' : `publisher\0${name}`
}

/** 52 bits, so that a lane is an exact number everywhere. If two lanes collide, they only wait for each other. */
const HEX_DIGITS = 13

// U+0000 cannot occur in any part. As a separator it keeps ('a', 'b:c') and ('a:b', 'c') apart.
function toLane(text: string): number {
  return Number.parseInt(hash('sha256', text).slice(0, HEX_DIGITS), 16)
}
