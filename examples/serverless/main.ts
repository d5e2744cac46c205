// npm run example:serverless: what a platform would do, in one process. An order, an order while the receiver is away, and
// the scheduled function.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { openDatabase } from '../servers.ts'

let isAway = false
const receiver = createServer((request, response) => {
  const id = String(request.headers['event-id'])
  if (!isAway) console.log(`  the receiver gets ${String(request.headers['event-type'])} ${id}`)
  response.writeHead(isAway ? 503 : 204).end()
})
await once(receiver.listen(0, '127.0.0.1'), 'listening')
const database = await openDatabase()
process.env['DATABASE_URL'] = database.url
process.env['WEBHOOK_URL'] = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
const { close, deploy, everyMinute, placeOrder } = await import('./functions.ts')

async function order(customer: string): Promise<void> {
  const request = new Request('http://shop/orders', {
    method: 'POST',
    body: JSON.stringify({ customer }),
  })
  console.log(`${customer} orders`)
  console.log(`  the function returns ${await (await placeOrder(request)).text()}`)
}

await deploy()
await order('Ada')
isAway = true
console.log('the receiver goes away')
await order('Grace')
isAway = false
console.log('the receiver is back, and the minute is over')
console.log(`  the scheduled function delivers ${await everyMinute()}`)

await close()
receiver.close()
await database.stop()
