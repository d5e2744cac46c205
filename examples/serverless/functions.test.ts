// The example, end to end: a real Postgres, and a receiver over HTTP that is away when the test says so.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDatabase, type TestDatabase } from '../../test/support/servers/database.ts'
import type * as Functions from './functions.ts'

let database: TestDatabase
let functions: typeof Functions
let isAway = false
const received: unknown[] = []
const receiver = createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray()).toString()
  if (!isAway) received.push(JSON.parse(body))
  response.writeHead(isAway ? 503 : 204).end()
})

beforeAll(async () => {
  database = await createDatabase()
  await once(receiver.listen(0, '127.0.0.1'), 'listening')
  process.env['DATABASE_URL'] = database.url
  process.env['WEBHOOK_URL'] = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
  functions = await import('./functions.ts')
  await functions.deploy()
})
afterAll(async () => {
  await functions.close()
  receiver.close()
  await database.drop()
})

async function order(customer: string) {
  const body = JSON.stringify({ customer })
  const response = await functions.placeOrder(new Request('http://shop', { method: 'POST', body }))
  return [response.status, await response.json()] as const
}

it('sends before it returns, and what could not be sent goes out on schedule', async () => {
  expect(await order('Ada')).toEqual([202, { orderId: 1, published: true }])
  expect(received).toEqual([{ orderId: 1, customer: 'Ada' }])
  isAway = true
  expect(await order('Grace')).toEqual([202, { orderId: 2, published: false }])
  isAway = false
  expect(await functions.everyMinute()).toBe(1)
  expect(received.slice(1)).toEqual([{ orderId: 2, customer: 'Grace' }])
})
