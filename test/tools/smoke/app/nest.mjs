// aftercommit/nestjs from the installed package, with a Nest of any supported version and no client but postgres.js. Without a
// compiler, so decorators are called as the functions that they are. DATABASE_URL names an empty database.
import 'reflect-metadata'
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { Controller, Get, Inject, Injectable, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { HealthCheckService, TerminusModule } from '@nestjs/terminus'
import {
  getOutboxToken,
  InjectOutbox,
  OnOutboxEvent,
  OutboxHealthIndicator,
  OutboxModule,
} from 'aftercommit/nestjs'
import { postgresJs } from 'aftercommit/postgres-js'
import postgres from 'postgres'

const sql = postgres(process.env.DATABASE_URL, { onnotice: () => {} })
const handled = []

class Orders {
  constructor(outbox) {
    this.outbox = outbox
  }
  async place(id) {
    await this.outbox.withOutbox(async (tx, emit) => {
      await tx`insert into orders values (${id})`
      emit({ type: 'OrderPlaced', aggregateType: 'order', aggregateId: id, payload: { id } })
      if (id < 0) throw new Error('no')
    })
  }
}
Injectable()(Orders)
InjectOutbox()(Orders, undefined, 0)

class Handlers {
  constructor(orders) {
    this.orders = orders
  }
  async placed({ payload }) {
    handled.push(payload.id)
    if (payload.id === 1) await this.orders.place(2)
  }
}
Injectable()(Handlers)
Inject(Orders)(Handlers, undefined, 0)
OnOutboxEvent('OrderPlaced')(
  Handlers.prototype,
  'placed',
  Object.getOwnPropertyDescriptor(Handlers.prototype, 'placed'),
)

class Health {
  constructor(service, outbox) {
    Object.assign(this, { service, outbox })
  }
  check() {
    return this.service.check([() => this.outbox.isHealthy('outbox')])
  }
}
Controller('health')(Health)
Inject(HealthCheckService)(Health, undefined, 0)
Inject(OutboxHealthIndicator)(Health, undefined, 1)
Get()(Health.prototype, 'check', Object.getOwnPropertyDescriptor(Health.prototype, 'check'))

class AppModule {}
Module({
  imports: [
    TerminusModule,
    OutboxModule.forRootAsync({ useFactory: () => ({ db: postgresJs(sql), migrate: true }) }),
  ],
  controllers: [Health],
  providers: [Orders, Handlers],
})(AppModule)

await sql`create table orders (id integer)`
const app = await NestFactory.create(AppModule, { logger: ['warn', 'error'], abortOnError: false })
await app.listen(0, '127.0.0.1')
await app.get(Orders).place(1)
await assert.rejects(app.get(Orders).place(-1), /no/)
const health = await fetch(`${await app.getUrl()}/health`)
assert.equal((await health.json()).info.outbox.status, 'up')
const outbox = app.get(getOutboxToken())
while (handled.length < 2) await outbox.flush()
await app.close()
assert.deepEqual(handled, [1, 2])
const rows = await sql`select status from outbox`
assert.deepEqual(
  rows.map(({ status }) => status),
  ['published', 'published'],
)

class Twice extends Handlers {}
class Refused {}
Module({
  imports: [OutboxModule.forRoot({ db: postgresJs(sql) })],
  providers: [Orders, Handlers, { provide: Twice, useClass: Twice, inject: [Orders] }],
})(Refused)
await assert.rejects(
  NestFactory.createApplicationContext(Refused, { logger: false, abortOnError: false }).then(
    (context) => context.init(),
  ),
  { code: 'HANDLER_INVALID' },
)
await sql.end()
const { version } = createRequire(import.meta.url)('@nestjs/core/package.json')
console.log(`ok Nest ${version} on Node ${process.version}`)
