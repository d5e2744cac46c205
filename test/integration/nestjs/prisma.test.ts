// aftercommit/nestjs with the PrismaService that Nest's own documentation has: a client with hooks.
import {
  Injectable,
  Module,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common'
import { Test } from '@nestjs/testing'
import { PrismaPg } from '@prisma/adapter-pg'
import pg from 'pg'
import { expect, it } from 'vitest'
import { prismaDatabase } from '../../../src/drivers/prisma.ts'
import { createOutbox, type Outbox } from '../../../src/index.ts'
import {
  getOutboxToken,
  InjectOutbox,
  InjectOutboxDb,
  OutboxModule,
} from '../../../src/nestjs/nestjs.ts'
import { drain, recordingPublisher } from '../../../src/testing/testing.ts'
import { Mailer, PLACED, useNest } from '../../support/nest.ts'
import { PrismaClient } from '../../support/prisma/generated/client.ts'

const { fixture, start } = useNest()

it('emits in the transactions of the service, and calls the hooks of the service once', async () => {
  const called: string[] = []
  const pool = new pg.Pool({ connectionString: fixture.url })

  @Injectable()
  class PrismaService extends PrismaClient implements OnModuleInit, OnModuleDestroy {
    constructor() {
      super({ adapter: new PrismaPg(pool) })
    }

    async onModuleInit(): Promise<void> {
      called.push('init')
      await this.$connect()
    }

    async onModuleDestroy(): Promise<void> {
      called.push('destroy')
      await this.$disconnect()
    }
  }
  @Module({ providers: [PrismaService], exports: [PrismaService] })
  class PrismaModule {}

  @Injectable()
  class Orders {
    readonly outbox: Outbox
    readonly prisma: PrismaClient
    constructor(@InjectOutbox() outbox: Outbox, @InjectOutboxDb() prisma: PrismaService) {
      this.outbox = outbox
      this.prisma = prisma
    }

    async place(customer: string): Promise<void> {
      await this.prisma.$transaction(async (tx) => {
        await tx.order.create({ data: { customer } })
        this.outbox.emit(PLACED)
        if (customer === '') throw new Error('a customer has a name')
      })
    }
  }

  await fixture.sql`create table orders (id serial primary key, customer text unique)`
  const app = await start({
    imports: [
      OutboxModule.forRootAsync({
        imports: [PrismaModule],
        inject: [PrismaService],
        useFactory: (prisma: PrismaService) => ({
          db: prismaDatabase(prisma, { timeout: 30_000 }),
          start: false,
        }),
      }),
    ],
    providers: [Orders, Mailer],
  })
  const place = (customer: string) => app.get(Orders).place(customer)
  await place('Ada')
  await expect(place('')).rejects.toThrow('a customer has a name')
  await drain(app.get<Outbox>(getOutboxToken()))
  expect(app.get(Mailer).sent).toHaveLength(1)
  expect(await fixture.sql`select customer from orders`).toEqual([{ customer: 'Ada' }])
  await app.close()
  expect(called).toEqual(['init', 'destroy'])
  await pool.end()
})

it('is tested with an outbox on its own client, as the guide has it', async () => {
  let disconnected = 0

  @Injectable()
  class PrismaService extends PrismaClient implements OnModuleInit, OnApplicationShutdown {
    constructor() {
      super({ adapter: new PrismaPg({ connectionString: fixture.url }) })
    }

    async onModuleInit(): Promise<void> {
      await this.$connect()
    }

    async onApplicationShutdown(): Promise<void> {
      disconnected += 1
      await this.$disconnect()
    }
  }
  @Module({ providers: [PrismaService], exports: [PrismaService] })
  class PrismaModule {}

  @Module({
    imports: [
      OutboxModule.forRootAsync({
        imports: [PrismaModule],
        inject: [PrismaService],
        useFactory: (prisma: PrismaService) => ({
          db: prismaDatabase(prisma),
          schema: 'outbox',
          migrate: true,
        }),
      }),
    ],
    providers: [Mailer],
  })
  class AppModule {}

  const publisher = recordingPublisher()
  const module = await Test.createTestingModule({ imports: [AppModule] })
    .overrideProvider(getOutboxToken())
    .useFactory({
      inject: [PrismaService],
      factory: (prisma: PrismaService) =>
        createOutbox({ db: prismaDatabase(prisma), schema: 'outbox', publisher, logger: false }),
    })
    .compile()
  await module.init()
  const outbox = module.get<Outbox>(getOutboxToken())
  await outbox.migrate()
  await outbox.withOutbox(async (_, emit) => emit(PLACED))
  await drain(outbox)
  expect(publisher.published).toHaveLength(1)
  await module.close()
  expect(disconnected).toBe(1)
})
