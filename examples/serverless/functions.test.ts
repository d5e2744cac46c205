// The example, end to end: a real Postgres, and a receiver over HTTP that is away when the test says so.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDatabase, type TestDatabase } from '../../test/support/servers/database.ts'
import { waitUntil } from '../../test/support/timing/wait-until.ts'
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
  const answer = (await response.json()) as { orderId: number; published: boolean }
  return { status: response.status, ...answer }
}

it('sends before it returns, and what could not be sent goes out on schedule', async () => {
  // On a machine that stands still the function's time may be over first. Then the next call sends both.
  let orders = 0
  const isSent = async () => {
    const { status, orderId, published } = await order('Ada')
    expect({ status, orderId }).toEqual({ status: 202, orderId: (orders += 1) })
    return published
  }
  await waitUntil(isSent, { message: 'an order is published when the function returns' })
  const ids = Array.from({ length: orders }, (_, n) => n + 1)
  expect(received).toEqual(ids.map((orderId) => ({ orderId, customer: 'Ada' })))
  isAway = true
  const unsent = { orderId: orders + 1, published: false }
  expect(await order('Grace')).toEqual({ status: 202, ...unsent })
  isAway = false
  expect(await functions.everyMinute()).toBe(1)
  expect(received.slice(orders)).toEqual([{ orderId: orders + 1, customer: 'Grace' }])
})
