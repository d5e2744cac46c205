// The types of routes, checked by tsc as part of `npm run check`; vitest runs this file for its form only.
import { expectTypeOf, it } from 'vitest'
import {
  type OutboxOptions,
  type Publisher,
  type RouterPublisher,
  routerPublisher,
} from '../../src/index.ts'

declare const kafka: Publisher
declare const rabbit: Publisher

it('knows the names of the publishers that routes may lead to', () => {
  const check = () => {
    const publishers = { kafka, rabbit }
    const router = routerPublisher({
      publishers,
      routes: { orders: 'kafka', invoices: 'rabbit' },
      otherwise: 'kafka',
    })
    expectTypeOf(router).toEqualTypeOf<RouterPublisher>()
    // @ts-expect-error there is no publisher of this name
    routerPublisher({ publishers, routes: { orders: 'kafak' } })
    // @ts-expect-error nor of this one
    routerPublisher({ publishers, routes: { orders: 'kafka' }, otherwise: 'nats' })
    // @ts-expect-error a router is no publisher
    routerPublisher({ publishers: { router, kafka }, routes: { orders: 'kafka' } })
  }
  expectTypeOf(check).toBeFunction()
})

it('lets an outbox have a router, and its topics in a table', () => {
  expectTypeOf<RouterPublisher>().toExtend<OutboxOptions['publisher']>()
  expectTypeOf<RouterPublisher>().not.toExtend<Publisher>()
  expectTypeOf<{ byType: { A: string } }>().toExtend<OutboxOptions['topic']>()
  expectTypeOf<{ byType: { A: number } }>().not.toExtend<OutboxOptions['topic']>()
  expectTypeOf<() => undefined>().toExtend<OutboxOptions['topic']>()
})
