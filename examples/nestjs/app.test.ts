// The example, end to end: a real Postgres, real HTTP, the handlers of the application.
import { once } from 'node:events'
import type { INestApplication } from '@nestjs/common'
import { Test } from '@nestjs/testing'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { getOutboxToken } from 'aftercommit/nestjs'
import { drain } from 'aftercommit/testing'
import {
  connect,
  createDatabase,
  type TestConnection,
  type TestDatabase,
} from '../../test/support/servers/database.ts'
import { defer, type Deferred } from '../../test/support/timing/deferred.ts'
import { AppModule } from './app.ts'
import { Mailer } from './confirmations.ts'
import type { ShopOutbox } from './events.ts'
import { Settings } from './settings.ts'

let database: TestDatabase
let outside: TestConnection
let app: INestApplication
let outbox: ShopOutbox
let mails: string[]
/** What a mail waits for, so that a test can close the application meanwhile. */
let mailing: { readonly begun: Deferred<void>; readonly mayGo: Deferred<void> } | null

beforeAll(async () => {
  database = await createDatabase()
  outside = connect(database.url)
})
afterAll(async () => {
  await outside.close()
  await database.drop()
})
beforeEach(async () => {
  mails = []
  mailing = null
  const module = await Test.createTestingModule({ imports: [AppModule] })
    .overrideProvider(Settings)
    .useValue({ databaseUrl: database.url })
    .overrideProvider(Mailer)
    .useValue({
      async send(to: string, text: string) {
        mailing?.begun.resolve()
        await mailing?.mayGo.promise
        mails.push(`${to}: ${text}`)
      },
    })
    .compile()
  app = module.createNestApplication()
  await app.listen(0, '127.0.0.1')
  outbox = app.get<ShopOutbox>(getOutboxToken())
})
afterEach(async () => {
  await app.close()
  await outside.client`truncate outbox, orders`
})

async function ask(path: string, body?: object) {
  const init = body && {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }
  const response = await fetch(`${await app.getUrl()}${path}`, init)
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

const statuses = async () =>
  await outside.client`select event_type, status from outbox order by seq`

it('commits an order, and its handlers get each event once', async () => {
  const { status, body } = await ask('/orders', { customer: 'ada', total: 42 })
  expect([status, body['status']]).toEqual([201, 'placed'])
  await drain(outbox)
  expect(mails).toEqual([`ada: order ${body['id'] as number} is confirmed`])
  expect((await ask(`/orders/${body['id'] as number}`)).body['status']).toBe('confirmed')
  expect(await statuses()).toEqual([
    { event_type: 'OrderPlaced', status: 'published' },
    { event_type: 'OrderConfirmed', status: 'published' },
  ])
})

it('publishes nothing of a request that is rolled back', async () => {
  expect((await ask('/orders', { customer: 'ada', total: -1 })).status).toBe(400)
  await drain(outbox)
  expect(mails).toEqual([])
  expect(await statuses()).toEqual([])
})

it('sends what was committed before it closes', async () => {
  mailing = { begun: defer(), mayGo: defer() }
  await ask('/orders', { customer: 'ada', total: 42 })
  await mailing.begun.promise
  const server = app.getHttpServer() as { listening: boolean } & NodeJS.EventEmitter
  const serverClosed = once(server, 'close')
  const closing = app.close()
  await serverClosed
  expect(mails).toEqual([])
  mailing.mayGo.resolve()
  await closing
  expect(mails).toHaveLength(1)
  expect((await statuses()).map(({ status }) => status as string)).toEqual([
    'published',
    'published',
  ])
})

it('reports its health, and what is wrong with it', async () => {
  const { status, body } = await ask('/health')
  expect([status, body]).toMatchObject([200, { status: 'ok', info: { outbox: { status: 'up' } } }])
  await outside.client`alter table outbox rename to away`
  try {
    const down = await ask('/health')
    expect([down.status, down.body]).toMatchObject([
      503,
      {
        status: 'error',
        error: { outbox: { status: 'down', flags: { database: expect.any(String) } } },
      },
    ])
  } finally {
    await outside.client`alter table away rename to outbox`
  }
})
