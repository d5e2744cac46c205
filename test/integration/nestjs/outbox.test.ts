// aftercommit/nestjs: which outbox an application gets, and when it starts.
import { Inject, Injectable, type LoggerService, Module } from '@nestjs/common'
import { describe, expect, it, vi } from 'vitest'
import { createOutbox, type Outbox } from '../../../src/index.ts'
import {
  getOutboxDbToken,
  getOutboxToken,
  type HandledEvent,
  InjectOutbox,
  InjectOutboxDb,
  OnOutboxEvent,
  OutboxHealthIndicator,
  OutboxModule,
} from '../../../src/nestjs/nestjs.ts'
import { drain, recordingPublisher } from '../../../src/testing/testing.ts'
import { Mailer, PLACED, place, useNest } from '../../support/nest.ts'
import { connect } from '../../support/servers/database.ts'

const { fixture, options, outboxModule, start } = useNest()

describe('the outbox', () => {
  it('is injected anywhere, and its handler may inject a service that injects it', async () => {
    const handled: string[] = []
    @Injectable()
    class Orders {
      readonly outbox: Outbox
      constructor(@InjectOutbox() outbox: Outbox) {
        this.outbox = outbox
      }
    }
    @Injectable()
    class Confirmations {
      readonly orders: Orders
      constructor(@Inject(Orders) orders: Orders) {
        this.orders = orders
      }

      @OnOutboxEvent('OrderPlaced')
      async confirm(): Promise<void> {
        handled.push('placed')
        await place(this.orders.outbox, 'OrderConfirmed')
      }

      @OnOutboxEvent('OrderConfirmed')
      @OnOutboxEvent('OrderRefused')
      tell({ type }: HandledEvent): void {
        handled.push(type)
      }
    }
    @Module({ providers: [Orders, Confirmations] })
    class Feature {}
    const app = await start({ imports: [outboxModule(), Feature] })
    const outbox = app.get<Outbox>(getOutboxToken())
    await place(outbox)
    await drain(outbox)
    await place(outbox, 'OrderRefused')
    await drain(outbox)
    expect(handled).toEqual(['placed', 'OrderConfirmed', 'OrderRefused'])
    expect(app.get(Orders).outbox).toBe(outbox)
  })

  it('is made of options that a factory, a class or a provider returns', async () => {
    const settings = Symbol('settings')
    @Module({ providers: [{ provide: settings, useValue: 'billing' }], exports: [settings] })
    class Settings {}
    @Injectable()
    class Configuration {
      createOutboxOptions = () => options({ workerId: 'from a class' })
    }
    @Module({ providers: [Configuration], exports: [Configuration] })
    class Configured {}
    const app = await start({
      imports: [
        OutboxModule.forRootAsync({
          imports: [Settings],
          inject: [settings],
          useFactory: async (schema: string) => options({ workerId: schema }),
        }),
        OutboxModule.forRootAsync({ name: 'class', useClass: Configuration }),
        OutboxModule.forRootAsync({
          name: 'existing',
          imports: [Configured],
          useExisting: Configuration,
        }),
      ],
    })
    const workers: string[] = []
    for (const name of [undefined, 'class', 'existing']) {
      const outbox = app.get<Outbox>(getOutboxToken(name))
      await outbox.start()
      workers.push(...(await outbox.instances()).map(({ workerId }) => workerId))
      await outbox.stop()
    }
    expect(workers).toEqual(['billing', 'from a class', 'from a class'])
  })

  it('has a namesake for each name, with handlers and a database of its own', async () => {
    @Injectable()
    class Billing {
      readonly sent: string[] = []
      readonly db: unknown
      constructor(@InjectOutboxDb('billing') db: unknown) {
        this.db = db
      }

      @OnOutboxEvent('OrderPlaced', { outbox: 'billing' })
      placed({ type }: HandledEvent): void {
        this.sent.push(type)
      }
    }
    const app = await start({
      imports: [outboxModule(), outboxModule({ name: 'billing' })],
      providers: [Mailer, Billing],
    })
    const billing = app.get<Outbox>(getOutboxToken('billing'))
    await place(billing)
    await drain(billing)
    expect([app.get(Mailer).sent.length, app.get(Billing).sent.length]).toEqual([0, 1])
    const outbox = app.get<Outbox>(getOutboxToken())
    await place(outbox)
    await drain(outbox)
    expect([app.get(Mailer).sent.length, app.get(Billing).sent.length]).toEqual([1, 1])
    expect(app.get(Billing).db).toBe(billing.db)
    expect(outbox).not.toBe(billing)
  })

  it('gives its watched database, on which each transaction is a unit of work', async () => {
    const app = await start({ imports: [outboxModule()], providers: [Mailer] })
    const outbox = app.get<Outbox<typeof fixture.db>>(getOutboxToken())
    const db = app.get<typeof fixture.db>(getOutboxDbToken())
    await db.transaction(async () => outbox.emit(PLACED))
    await drain(outbox)
    expect(app.get(Mailer).sent).toEqual([`OrderPlaced ${PLACED.aggregateId}`])
  })

  it('starts with the application, and logs through its logger', async () => {
    const lines: unknown[][] = []
    const note =
      (level: string) =>
      (...given: unknown[]) =>
        void lines.push([level, ...given])
    const logger: LoggerService = {
      log: note('log'),
      error: note('error'),
      warn: note('warn'),
      debug: note('debug'),
    }
    @Injectable()
    class Failing {
      @OnOutboxEvent('OrderPlaced')
      fail(): void {
        throw new Error('no mail today')
      }
    }
    const app = await start(
      { imports: [OutboxModule.forRoot({ db: fixture.db, maxAttempts: 1 })], providers: [Failing] },
      (builder) => builder.setLogger(logger),
    )
    const outbox = app.get<Outbox>(getOutboxToken())
    expect(await outbox.instances()).toHaveLength(1)
    await place(outbox)
    await drain(outbox)
    await app.close()
    expect(await outbox.instances()).toHaveLength(0)
    const own = lines.filter((line) => line.at(-1) === 'Outbox')
    expect(own).toContainEqual([
      'log',
      expect.stringMatching(/^outbox started \{ .*workerId: '/),
      'Outbox',
    ])
    const dead = own.find(([level]) => level === 'error')
    expect(dead).toEqual([
      'error',
      expect.stringContaining('no mail today'),
      expect.stringContaining('at Failing.fail'),
      'Outbox',
    ])
  })

  it('is left alone if a test puts another one in its place', async () => {
    const publisher = recordingPublisher()
    const own = fixture.outbox({ publisher })
    const starting = vi.spyOn(own, 'start')
    const app = await start(
      { imports: [outboxModule({ start: true })], providers: [Mailer] },
      (builder) => builder.overrideProvider(getOutboxToken()).useValue(own),
    )
    await place(app.get<Outbox>(getOutboxToken()))
    await drain(own)
    expect(publisher.published).toHaveLength(1)
    expect(starting).not.toHaveBeenCalled()
  })
})

describe('OutboxHealthIndicator', () => {
  it('says what is wrong, and what the table holds', async () => {
    const app = await start({ imports: [outboxModule()], providers: [Mailer] })
    const health = app.get(OutboxHealthIndicator)
    expect(await health.isHealthy('outbox')).toEqual({
      outbox: { status: 'up', pending: 0, deadLetters: 0 },
    })
    await place(app.get<Outbox>(getOutboxToken()))
    expect(await health.isHealthy('outbox', { maxPending: 0 })).toEqual({
      outbox: {
        status: 'down',
        pending: 1,
        deadLetters: 0,
        flags: { pending: 'more than 0 events are waiting to be sent' },
      },
    })
  })

  it('is down, and does not reject, while the database is away', async () => {
    const nowhere = connect('postgres://127.0.0.1:1/none', { connect_timeout: 1 })
    const away = createOutbox({ db: nowhere.db, publisher: recordingPublisher(), logger: false })
    expect(await new OutboxHealthIndicator(away).isHealthy('outbox')).toMatchObject({
      outbox: { status: 'down', flags: { database: expect.stringContaining('ECONNREFUSED') } },
    })
    await nowhere.close()
  })
})
