// npm run example:hono: the shop until Ctrl-C, which sends what was committed before it ends.
import { serve } from '@hono/node-server'
import { buildPage } from '../../test/support/run/built-page.ts'
import { onInterrupt, openDatabase } from '../servers.ts'

// In a clone the dashboard's page has to be built. The package brings it along.
await buildPage()
const database = await openDatabase()
process.env['DATABASE_URL'] = database.url
const { app } = await import('./app.ts')
const { close, open } = await import('./orders.ts')

await open()
const server = serve(
  { fetch: app.fetch, port: Number(process.env['PORT'] ?? 3000) },
  ({ port }) => {
    const url = `http://localhost:${port}`
    console.log(`
  curl ${url}/orders -H 'content-type: application/json' -d '{"customer":"ada","total":42}'
  curl ${url}/orders -H 'content-type: application/json' -d '{"customer":"ada","total":4200}'
  curl ${url}/orders/1
  ${url}/admin/outbox with the name admin and the password hono: the second order fails there
`)
  },
)
onInterrupt(async () => {
  server.close()
  await close()
  await database.stop()
})
