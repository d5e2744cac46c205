// The example, end to end: a real Postgres, the routes of the application, and its dashboard behind the password.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDatabase, type TestDatabase } from '../../test/support/servers/database.ts'
import type * as App from './app.ts'
import type * as Orders from './orders.ts'

let database: TestDatabase
let shop: typeof Orders
let app: typeof App.app

beforeAll(async () => {
  database = await createDatabase()
  process.env['DATABASE_URL'] = database.url
  shop = await import('./orders.ts')
  ;({ app } = await import('./app.ts'))
  await shop.open()
})
afterAll(async () => {
  await shop.close()
  await database.drop()
})

const place = async (total: number) => {
  const body = JSON.stringify({ customer: 'ada', total })
  const response = await app.request('/orders', { method: 'POST', body })
  return [response.status, (await response.json()) as { id: number }] as const
}
const admin = { authorization: `Basic ${btoa('admin:hono')}` }

it('confirms an order, and shows on the dashboard why another one is not', async () => {
  const [status, { id }] = await place(42)
  expect(status).toBe(201)
  const [, refused] = await place(4_200)
  await shop.outbox.flush()
  expect(await (await app.request(`/orders/${id}`)).json()).toMatchObject({ status: 'confirmed' })
  const other = await app.request(`/orders/${refused.id}`)
  expect(await other.json()).toMatchObject({ status: 'placed' })

  const failed = await app.request('/admin/outbox/api/events?status=failed', { headers: admin })
  expect(await failed.json()).toMatchObject({
    events: [{ aggregateId: String(refused.id), error: expect.stringMatching(/limit/) }],
  })
})

it('serves the dashboard to those who know the password', async () => {
  expect((await app.request('/admin/outbox')).status).toBe(401)
  const page = await app.request('/admin/outbox/', { headers: admin })
  expect(page.status).toBe(200)
  expect(await page.text()).toContain('<script')
})
