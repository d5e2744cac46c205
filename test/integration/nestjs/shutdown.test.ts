// aftercommit/nestjs: in which order an application ends, so that what was committed is sent first.
import { once } from 'node:events'
import { get, type IncomingMessage, type Server } from 'node:http'
import { Controller, Get, Global, Injectable, Module } from '@nestjs/common'
import { describe, expect, it } from 'vitest'
import type { Outbox, OutboxOptions } from '../../../src/index.ts'
import {
  getOutboxToken,
  InjectOutbox,
  OnOutboxEvent,
  OutboxModule,
} from '../../../src/nestjs/nestjs.ts'
import { Mailer, place, useNest } from '../../support/nest.ts'
import { defer } from '../../support/timing/deferred.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const { fixture, options, outboxModule, start } = useNest()

describe('when the application closes', () => {
  const DATABASE = Symbol('database')

  function databaseModule(closed: string[], isGlobal: boolean) {
    @Injectable()
    class Database {
      readonly db = fixture.db
      async onApplicationShutdown(): Promise<void> {
        const running = await fixture.sql`select from outbox_instances where seen_at > '-infinity'`
        closed.push(`the database, with ${running.length} started`)
      }
    }
    @Module({
      providers: [Database, { provide: DATABASE, useExisting: Database }],
      exports: [DATABASE],
    })
    class DatabaseModule {}
    if (isGlobal) Global()(DatabaseModule)
    return DatabaseModule
  }

  it('still sends what the last request commits', async () => {
    const begun = defer()
    const going = defer()
    @Controller('orders')
    class Orders {
      readonly outbox: Outbox
      constructor(@InjectOutbox() outbox: Outbox) {
        this.outbox = outbox
      }

      @Get()
      async place(): Promise<void> {
        begun.resolve()
        await going.promise
        await place(this.outbox)
      }
    }
    const app = await start({
      imports: [outboxModule({ start: true })],
      controllers: [Orders],
      providers: [Mailer],
    })
    await app.listen(0, '127.0.0.1')
    const asking = once(get(`${await app.getUrl()}/orders`, { agent: false }), 'response')
    await begun.promise
    const closing = app.close()
    const server = app.getHttpServer() as Server
    await waitUntil(() => !server.listening, { message: 'the server closes' })
    going.resolve()
    const [response] = (await asking) as [IncomingMessage]
    response.resume()
    await closing
    expect(response.statusCode).toBe(200)
    expect(app.get(Mailer).sent).toHaveLength(1)
    expect(await fixture.rows()).toMatchObject([{ status: 'published' }])
  })

  it.each([
    ['of a module that the outbox imports', false],
    ['of a global module', true],
  ])('it sends what is under way before the database %s closes', async (_, isGlobal) => {
    const closed: string[] = []
    const begun = defer()
    const going = defer()
    @Injectable()
    class Slow {
      @OnOutboxEvent('OrderPlaced')
      async placed(): Promise<void> {
        begun.resolve()
        await going.promise
        closed.push('handled')
      }
    }
    const DatabaseModule = databaseModule(closed, isGlobal)
    const app = await start({
      imports: [
        OutboxModule.forRootAsync({
          imports: [DatabaseModule],
          inject: [DATABASE],
          useFactory: ({ db }: Pick<OutboxOptions, 'db'>) => options({ db, start: true }),
        }),
        DatabaseModule,
      ],
      providers: [Slow],
    })
    await place(app.get<Outbox>(getOutboxToken()))
    await begun.promise
    const closing = app.close()
    going.resolve()
    await closing
    expect(closed).toEqual(['handled', 'the database, with 0 started'])
    expect(await fixture.rows()).toMatchObject([{ status: 'published' }])
  })
})
