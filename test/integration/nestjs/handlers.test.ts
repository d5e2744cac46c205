// aftercommit/nestjs: which methods get which events, and with which of them an application does not start.
import { Controller, Inject, Injectable, Module, type ModuleMetadata, Scope } from '@nestjs/common'
import { Test } from '@nestjs/testing'
import { describe, expect, it, vi } from 'vitest'
import { defineEvents, event, type Outbox, routerPublisher } from '../../../src/index.ts'
import {
  getOutboxToken,
  nestHandlers,
  OnOutboxEvent,
  OutboxModule,
} from '../../../src/nestjs/nestjs.ts'
import { drain, recordingPublisher } from '../../../src/testing/testing.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { Mailer, PLACED, place, useNest } from '../../support/nest.ts'

const { closeLater, fixture, options, outboxModule, start } = useNest()

describe('handlers', () => {
  it('stand beside a broker: the topic decides', async () => {
    const kafka = recordingPublisher()
    const publisher = routerPublisher({
      publishers: { kafka, handlers: nestHandlers({ timeout: '5s' }) },
      routes: { mail: 'handlers' },
      otherwise: 'kafka',
    })
    const topic = { byType: { OrderPlaced: 'mail', OrderPaid: 'orders' } }
    const app = await start({ imports: [outboxModule({ publisher, topic })], providers: [Mailer] })
    const outbox = app.get<Outbox>(getOutboxToken())
    await place(outbox)
    await place(outbox, 'OrderPaid')
    await drain(outbox)
    expect(app.get(Mailer).sent).toHaveLength(1)
    expect(kafka.published.map(({ type }) => type)).toEqual(['OrderPaid'])
  })

  it('of a type whose topic goes to a broker are named in a warning', async () => {
    const logger = recordingLogger()
    const publisher = routerPublisher({
      publishers: { kafka: recordingPublisher(), handlers: nestHandlers() },
      routes: { mail: 'handlers' },
      otherwise: 'kafka',
    })
    const topic = { byType: { OrderPlaced: 'orders' } }
    await start({ imports: [outboxModule({ publisher, topic, logger })], providers: [Mailer] })
    expect(logger.lines.filter(({ level }) => level === 'warn')).toMatchObject([
      { fields: { type: 'OrderPlaced', topic: 'orders', publisher: 'kafka' } },
    ])
  })

  it('are found in controllers and base classes, also when another decorator has replaced them, once for each object', async () => {
    const replaced = (_: object, __: string, descriptor: PropertyDescriptor) => ({
      ...descriptor,
      value: () => {},
    })
    class Base {
      @replaced
      @OnOutboxEvent('OrderPaid')
      paid(): void {}

      @OnOutboxEvent('OrderPlaced')
      overridden(): void {}
    }
    @Controller()
    class Payments extends Base {
      get broken(): never {
        throw new Error('a getter was called')
      }

      override overridden(): void {
        throw new Error('a method that is not decorated was called')
      }
    }
    const app = await start({
      imports: [outboxModule()],
      controllers: [Payments],
      providers: [
        Mailer,
        { provide: 'alias', useExisting: Mailer },
        { provide: 'same', useFactory: (mailer: Mailer) => mailer, inject: [Mailer] },
        { provide: 'nothing', useValue: null },
        { provide: 'bare', useValue: Object.create(null) as object },
      ],
    })
    const paid = vi.spyOn(app.get(Payments), 'paid')
    const outbox = app.get<Outbox>(getOutboxToken())
    await place(outbox)
    await place(outbox, 'OrderPaid')
    await drain(outbox)
    expect(app.get(Mailer).sent).toHaveLength(1)
    expect(paid).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ type: 'OrderPaid', payload: PLACED.payload }),
      expect.any(AbortSignal),
    )
  })

  it('fail an event that has none, and the message says what to add', async () => {
    const app = await start({ imports: [outboxModule()], providers: [Mailer] })
    const outbox = app.get<Outbox>(getOutboxToken())
    await place(outbox, 'OrderLost')
    await drain(outbox)
    expect(await fixture.rows()).toMatchObject([
      {
        status: 'failed',
        last_error: expect.stringContaining(
          "no handler for 'OrderLost'; add a method with @OnOutboxEvent() to the application, which has handlers for OrderPlaced",
        ),
      },
    ])
  })

  it('are not asked before the application is initialised, and no attempt is lost', async () => {
    const module = await Test.createTestingModule({
      imports: [outboxModule()],
      providers: [Mailer],
    }).compile()
    const outbox = module.get<Outbox>(getOutboxToken())
    await place(outbox)
    expect((await outbox.flush()).left).toMatchObject([{ reason: 'unreachable' }])
    expect(await fixture.rows()).toMatchObject([{ status: 'pending', attempts: 0 }])
    await module.init()
    closeLater(module)
    await drain(outbox)
    expect(module.get(Mailer).sent).toHaveLength(1)
  })
})

describe('an application does not start with', () => {
  @Injectable()
  class Second {
    @OnOutboxEvent('OrderPlaced')
    also(): void {}
  }
  @Injectable({ scope: Scope.REQUEST })
  class PerRequest {
    @OnOutboxEvent('OrderPlaced')
    placed(): void {}
  }
  @Injectable({ scope: Scope.REQUEST })
  class Tenant {}
  @Injectable()
  class OfTenant {
    readonly tenant: Tenant
    constructor(@Inject(Tenant) tenant: Tenant) {
      this.tenant = tenant
    }

    @OnOutboxEvent('OrderPlaced')
    placed(): void {}
  }
  @Injectable({ scope: Scope.TRANSIENT })
  class Each {
    @OnOutboxEvent('OrderPlaced')
    placed(): void {}
  }
  @Injectable()
  class Misspelt {
    @OnOutboxEvent('OrderPlaced', { outbox: 'biling' })
    placed(): void {}
  }
  @Module({ providers: [Mailer] })
  class Elsewhere {}
  const events = defineEvents({
    OrderPlacd: event<{ id: string }>({ aggregate: 'order', key: ({ id }) => id }),
  })
  const publisher = recordingPublisher()

  const refused: [string, () => ModuleMetadata, string][] = [
    [
      'two handlers of one event',
      () => ({ imports: [outboxModule()], providers: [Mailer, Second] }),
      "'OrderPlaced' has two handlers, Mailer.placed() and Second.also()",
    ],
    [
      'a handler whose class is provided twice',
      () => ({ imports: [outboxModule(), Elsewhere], providers: [Mailer] }),
      'its class is provided in two modules',
    ],
    [
      'a handler of a request-scoped provider',
      () => ({ imports: [outboxModule()], providers: [PerRequest] }),
      'PerRequest.placed() handles an event, but its provider is request-scoped',
    ],
    [
      'a handler that injects a request-scoped provider',
      () => ({ imports: [outboxModule()], providers: [Tenant, OfTenant] }),
      'OfTenant.placed() handles an event, but its provider is request-scoped, or injects one',
    ],
    [
      'a handler of a transient provider',
      () => ({ imports: [outboxModule()], providers: [Each] }),
      'Each.placed() handles an event, but its provider is transient',
    ],
    [
      'a handler of an event that the catalog does not have',
      () => ({ imports: [outboxModule({ events })], providers: [Mailer] }),
      "Mailer.placed() handles 'OrderPlaced', which is not in the catalog; did you mean 'OrderPlacd'?",
    ],
    [
      'a handler of an outbox that is not there',
      () => ({ imports: [outboxModule({ name: 'billing' })], providers: [Misspelt] }),
      "Misspelt.placed() handles events of the outbox 'biling', which is not set up; did you mean 'billing'?",
    ],
    [
      'a handler of the outbox without a name, if each has one',
      () => ({ imports: [outboxModule({ name: 'billing' })], providers: [Mailer] }),
      'Mailer.placed() handles events of the outbox without a name, and there is none',
    ],
    [
      'two outboxes without a name',
      () => ({ imports: [outboxModule(), outboxModule()] }),
      'OutboxModule is set up twice; give one of the outboxes a name',
    ],
    [
      'two outboxes of one name',
      () => ({ imports: [outboxModule({ name: 'a' }), outboxModule({ name: 'a' })] }),
      "two outboxes are called 'a'",
    ],
    [
      'handlers that no event goes to',
      () => ({ imports: [outboxModule({ publisher })], providers: [Mailer] }),
      'Mailer.placed() would never be called, because no event goes to handlers',
    ],
  ]
  it.each(refused)('%s', async (_, metadata, message) => {
    const starting = start(metadata())
    await expect(starting).rejects.toMatchObject({ code: 'HANDLER_INVALID' })
    await expect(starting).rejects.toThrow(message)
  })

  it('options that cannot work', async () => {
    const given = [
      options({ threshold: '1s' }),
      { ...options(), strat: false },
      options({ start: 'no' as never }),
    ]
    for (const one of given) {
      const starting = start({ imports: [OutboxModule.forRoot(one)] })
      await expect(starting).rejects.toMatchObject({ code: 'OPTIONS_INVALID' })
    }
    expect(() => nestHandlers({ timeuot: 1 } as never)).toThrow("did you mean 'timeout'?")
  })
})
