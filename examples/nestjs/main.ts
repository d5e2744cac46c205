// npm run example:nestjs: a shop on NestJS with its own Postgres. Ctrl-C ends it, and sends what was committed first.
import { NestFactory } from '@nestjs/core'
import { startPostgres } from '../../test/support/servers/postgres-server.ts'
import { AppModule } from './app.ts'

const server = process.env['DATABASE_URL'] ? null : await startPostgres()
if (server) process.env['DATABASE_URL'] = server.url
const app = await NestFactory.create(AppModule)
await app.listen(process.env['PORT'] ?? 3000, '127.0.0.1')
const url = await app.getUrl()
console.log(`
  curl ${url}/orders -H 'content-type: application/json' -d '{"customer":"ada@example.com","total":42}'
  curl ${url}/orders/1
  curl ${url}/health
`)

// In an application of your own, app.enableShutdownHooks() is enough. Here Postgres has to end after it.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await app.close()
    await server?.stop()
  })
}
