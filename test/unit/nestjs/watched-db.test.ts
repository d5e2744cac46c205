import { describe, expect, it } from 'vitest'
import { OutboxOptionsError } from '../../../src/errors.ts'
import { watchedDb } from '../../../src/nestjs/watched-db.ts'

describe('the watched database as a provider', () => {
  it('is the handle itself, if that has no hooks of Nest', () => {
    const db = { transaction: () => {} }
    expect(watchedDb({ db })).toBe(db)
  })

  it('hides the hooks of a service that is a database, so that Nest calls them once', () => {
    class PrismaService {
      readonly order = { count: 1 }
      onModuleInit(): void {}
      onModuleDestroy(): void {}
      who(): unknown {
        return this.order
      }
    }
    const service = new PrismaService()
    const db = watchedDb({ db: service }) as PrismaService
    expect(db).toHaveProperty('onModuleInit', undefined)
    expect(db).toHaveProperty('onModuleDestroy', undefined)
    expect(db.who()).toBe(service.order)
  })

  it('is null where the driver has nothing to watch', () => {
    const outbox = {
      get db(): never {
        throw new OutboxOptionsError('a Pool of node-postgres has no transaction() to watch')
      },
    }
    expect(watchedDb(outbox)).toBeNull()
  })
})
