// Applications of Nest on the database of a test file, closed when their test ends.
import { Injectable, type ModuleMetadata } from '@nestjs/common'
import { Test } from '@nestjs/testing'
import { afterEach } from 'vitest'
import type { Outbox } from '../../src/index.ts'
import {
  type HandledEvent,
  OnOutboxEvent,
  OutboxModule,
  type OutboxModuleName,
  type OutboxModuleOptions,
} from '../../src/nestjs/nestjs.ts'
import { newEvent } from './doubles/sample-events.ts'
import { useFixture } from './fixture.ts'

export const PLACED = newEvent({ type: 'OrderPlaced' })

export function place(outbox: Pick<Outbox, 'withOutbox'>, type = 'OrderPlaced'): Promise<string> {
  return outbox.withOutbox(async (_, emit) => emit({ ...PLACED, type }))
}

/** A provider with a handler. */
@Injectable()
export class Mailer {
  readonly sent: string[] = []

  @OnOutboxEvent('OrderPlaced')
  placed({ type, aggregateId }: HandledEvent): void {
    this.sent.push(`${type} ${aggregateId}`)
  }
}

export function useNest() {
  const fixture = useFixture()
  const apps: { close(): Promise<void> }[] = []
  afterEach(async () => {
    await Promise.all(apps.splice(0).map((app) => app.close()))
  })

  const options = (more: Partial<OutboxModuleOptions> = {}): OutboxModuleOptions => ({
    db: fixture.db,
    logger: false,
    start: false,
    ...more,
  })

  return {
    fixture,
    options,
    outboxModule: (more: Partial<OutboxModuleOptions> & OutboxModuleName = {}) =>
      OutboxModule.forRoot({ ...options(), ...more }),
    closeLater: (app: { close(): Promise<void> }) => void apps.push(app),
    start: async (
      metadata: ModuleMetadata,
      change: (builder: ReturnType<typeof Test.createTestingModule>) => void = () => {},
    ) => {
      const builder = Test.createTestingModule(metadata)
      change(builder)
      const app = (await builder.compile()).createNestApplication()
      await app.init()
      apps.push(app)
      return app
    },
  }
}
