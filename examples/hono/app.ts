// The application: orders over HTTP, and the dashboard of their outbox at /admin/outbox.
import { dashboard } from 'aftercommit/dashboard'
import { Hono } from 'hono'
import { basicAuth } from 'hono/basic-auth'
import { findOrder, outbox, placeOrder } from './orders.ts'

const PASSWORD = process.env['ADMIN_PASSWORD'] ?? 'hono'

const page = dashboard(outbox, {
  basePath: '/admin/outbox',
  // A request that gets here has passed basicAuth(). Return { by } alone for a person who may only look.
  authorize: () => ({ by: 'admin', mayAct: true }),
})

export const app = new Hono()

app.post('/orders', async (context) => {
  const { customer, total } = await context.req.json<{ customer: string; total: number }>()
  return context.json({ id: await placeOrder(customer, total) }, 201)
})
app.get('/orders/:id', async (context) => {
  const order = await findOrder(Number(context.req.param('id')))
  return order ? context.json(order) : context.notFound()
})

app.use('/admin/*', basicAuth({ username: 'admin', password: PASSWORD }))
app.all('/admin/outbox', (context) => page(context.req.raw))
app.all('/admin/outbox/*', (context) => page(context.req.raw))
