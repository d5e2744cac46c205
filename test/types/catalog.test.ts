// The types of the catalog, checked by tsc as part of `npm run check`; vitest runs this file for its form only.
import { type } from 'arktype'
import type { NodePgDatabase, NodePgTransaction } from 'drizzle-orm/node-postgres'
import type { PostgresJsDatabase, PostgresJsTransaction } from 'drizzle-orm/postgres-js'
import * as v from 'valibot'
import { expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import {
  createOutbox,
  defineEvents,
  type Emit,
  type EmittedPayload,
  event,
  type NewEvent,
  type Outbox,
  type Publisher,
  type ReceivedPayload,
  type TransactionOf,
} from '../../src/index.ts'

type Completed = { orderId: string; total: number }

const events = defineEvents({
  OrderCompleted: event<Completed>({ aggregate: 'order', key: (e) => e.orderId, topic: 'orders' }),
  ZodEvent: event({
    schema: z.object({ id: z.number(), note: z.string().default('none'), at: z.coerce.date() }),
    aggregate: 'zod',
    key: (e) => e.id,
  }),
  ValibotEvent: event({
    schema: v.object({
      id: v.pipe(
        v.string(),
        v.transform((text) => Number(text)),
      ),
    }),
    aggregate: 'valibot',
    key: (e) => e.id,
  }),
  ArktypeEvent: event({
    schema: type({ id: 'string', 'tags?': 'string[]' }),
    aggregate: 'arktype',
    key: (e) => e.id,
  }),
})
type Events = typeof events

it('infers what emit() takes and what a handler gets, from a type and from each kind of schema', () => {
  expectTypeOf<EmittedPayload<Events, 'OrderCompleted'>>().toEqualTypeOf<Completed>()
  expectTypeOf<ReceivedPayload<Events, 'OrderCompleted'>>().toEqualTypeOf<Completed>()
  expectTypeOf<EmittedPayload<Events, 'ZodEvent'>>().toEqualTypeOf<{
    id: number
    note?: string | undefined
    at: unknown
  }>()
  // A Date is text when it comes out of JSON.
  expectTypeOf<ReceivedPayload<Events, 'ZodEvent'>>().toEqualTypeOf<{
    id: number
    note: string
    at: string
  }>()
  expectTypeOf<EmittedPayload<Events, 'ValibotEvent'>>().toEqualTypeOf<{ id: string }>()
  expectTypeOf<ReceivedPayload<Events, 'ValibotEvent'>>().toEqualTypeOf<{ id: number }>()
  expectTypeOf<EmittedPayload<Events, 'ArktypeEvent'>>().toEqualTypeOf<{
    id: string
    tags?: string[]
  }>()
})

it('has what JSON makes of a payload', () => {
  type Given = {
    list: readonly [Date, { at: Date }]
    maybe?: 'a' | 'b'
    none: null
    known: unknown
  }
  const declared = { Given: event<Given>({ aggregate: 'a', key: () => 1 }) }
  expectTypeOf<ReceivedPayload<typeof declared, 'Given'>>().toEqualTypeOf<{
    list: readonly [string, { at: string }]
    maybe?: 'a' | 'b'
    none: null
    known: unknown
  }>()
})

it('takes the events of the catalog, each with its payload', () => {
  const check = (outbox: Outbox<PostgresJsDatabase, Events>) => {
    void outbox.withOutbox((_, emit) => {
      for (const take of [emit, outbox.emit]) {
        const payload = { orderId: 'o-1', total: 1 }
        expectTypeOf(take('OrderCompleted', payload)).toEqualTypeOf<string>()
        expectTypeOf(
          take('OrderCompleted', payload, { correlationId: 'c' }),
        ).toEqualTypeOf<string>()
        expectTypeOf(
          take('OrderCompleted', payload, { deliverAfter: '15m' }),
        ).toEqualTypeOf<string>()
        expectTypeOf(
          take({ type: 'OrderCompleted', payload, deliverAt: new Date() }),
        ).toEqualTypeOf<string>()
        expectTypeOf(take({ type: 'OrderCompleted', payload })).toEqualTypeOf<string>()
        const many = take([
          {
            type: 'OrderCompleted',
            payload,
            traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
          },
          { type: 'ZodEvent', payload: { id: 1, at: '2026-01-02' } },
          { type: 'ValibotEvent', payload: { id: '17' }, topic: 'elsewhere' },
        ])
        expectTypeOf(many).toEqualTypeOf<string[]>()
      }
    })
  }
  expectTypeOf(check).toBeFunction()
})

it('does not compile with a wrong name, a wrong payload, or an aggregate by hand', () => {
  const check = (emit: Outbox<PostgresJsDatabase, Events>['emit']) => {
    const payload = { orderId: 'o-1', total: 1 }
    // @ts-expect-error there is no such event
    emit('OrderComplete', payload)
    // @ts-expect-error total is missing
    emit('OrderCompleted', { orderId: 'o-1' })
    // @ts-expect-error total is a number
    emit('OrderCompleted', { orderId: 'o-1', total: '1' })
    // @ts-expect-error the payload has no such property
    emit('OrderCompleted', { orderId: 'o-1', total: 1, totl: 1 })
    // @ts-expect-error the payload is missing
    emit('OrderCompleted')
    // @ts-expect-error details have no such property
    emit('OrderCompleted', payload, { corelationId: 'c' })
    // @ts-expect-error a duration has a unit, or is a number of milliseconds
    emit('OrderCompleted', payload, { deliverAfter: '15 minutes' })
    // @ts-expect-error a time is a Date
    emit('OrderCompleted', payload, { deliverAt: '2027-01-01' })
    // @ts-expect-error the declaration says it
    emit('OrderCompleted', payload, { aggregateId: 'o-2' })
    // @ts-expect-error the payload of another event
    emit('ArktypeEvent', payload)
    // @ts-expect-error the payload of another event
    emit({ type: 'ZodEvent', payload })
    // @ts-expect-error one of them has the payload of another
    emit([
      { type: 'OrderCompleted', payload },
      { type: 'ArktypeEvent', payload: { total: 1 } },
    ])
    // @ts-expect-error an event that no catalog checks
    emit({} as NewEvent)
  }
  expectTypeOf(check).toBeFunction()
})

it('does not compile a declaration without key or aggregate, or with a key of nothing', () => {
  const check = () => {
    const schema = z.object({ id: z.string() })
    // @ts-expect-error key is missing
    event<Completed>({ aggregate: 'order' })
    // @ts-expect-error aggregate is missing
    event<Completed>({ key: (e) => e.orderId })
    // @ts-expect-error there is no such property to take the key from
    event<Completed>({ aggregate: 'order', key: (e) => e.id })
    // @ts-expect-error a key is text or a number
    event<Completed>({ aggregate: 'order', key: (e) => e })
    // @ts-expect-error there is no such option
    event<Completed>({ aggregate: 'order', key: (e) => e.orderId, topics: 'orders' })
    // @ts-expect-error key is missing
    event({ schema, aggregate: 'order' })
    // @ts-expect-error the schema has no such property
    event({ schema, aggregate: 'order', key: (e) => e.orderId })
    // @ts-expect-error not a schema
    event({ schema: { id: 'string' }, aggregate: 'order', key: () => 'o-1' })
    // @ts-expect-error not a declaration
    defineEvents({ OrderCompleted: { aggregate: 'order' } })
  }
  expectTypeOf(check).toBeFunction()
})

it("keeps each driver's own transaction, with a catalog and without", () => {
  const check = (js: PostgresJsDatabase, pg: NodePgDatabase, publisher: Publisher) => {
    void createOutbox({ db: js, publisher, events }).withOutbox((tx, emit) => {
      expectTypeOf(tx).toEqualTypeOf<TransactionOf<PostgresJsDatabase>>()
      expectTypeOf<typeof tx>().toExtend<Pick<PostgresJsTransaction<never, never>, 'rollback'>>()
      emit('ArktypeEvent', { id: 'a' })
    })
    void createOutbox({ db: pg, publisher, events }).withOutbox((tx) => {
      expectTypeOf(tx).toEqualTypeOf<TransactionOf<NodePgDatabase>>()
      expectTypeOf<typeof tx>().toExtend<Pick<NodePgTransaction<never, never>, 'rollback'>>()
    })
    expectTypeOf(createOutbox({ db: js, publisher })).toEqualTypeOf<Outbox<PostgresJsDatabase>>()
    void createOutbox({ db: pg, publisher }).withOutbox((tx, emit) => {
      expectTypeOf(tx).toEqualTypeOf<TransactionOf<NodePgDatabase>>()
      expectTypeOf(emit).toEqualTypeOf<Emit>()
      // @ts-expect-error without a catalog there are no names
      emit('ArktypeEvent', { id: 'a' })
    })
  }
  expectTypeOf(check).toBeFunction()
})

it('refuses a bigint in a plain payload type, which JSON does not have', () => {
  type Json = null | string | number | boolean | Json[] | { [key: string]: Json }
  const declare = <Payload extends { id: string }>() =>
    event<Payload>({ aggregate: 'counter', key: (e) => e.id })
  const counted = defineEvents({
    Counted: declare<{ id: string; deep: { total: bigint }[] }>(),
    Dated: declare<{ id: string; at: Date; note?: string | null }>(),
    Any: declare<{ id: string; json: Json; anything: unknown }>(),
  })
  const check = (outbox: Outbox<PostgresJsDatabase, typeof counted>) => {
    // @ts-expect-error a bigint has to be text
    outbox.emit('Counted', { id: 'a', deep: [{ total: 1n }] })
    outbox.emit('Dated', { id: 'a', at: new Date(), note: null })
    outbox.emit('Any', { id: 'a', json: { list: [1, { deep: null }] }, anything: new Map() })
  }
  expectTypeOf(check).toBeFunction()
})
