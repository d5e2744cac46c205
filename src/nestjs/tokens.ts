// Under which tokens an application finds its outbox and its watched database.
import { Inject } from '@nestjs/common'

export const DEFAULT_NAME = 'default'

/** The token of an outbox, for `inject` and `overrideProvider()`. */
export function getOutboxToken(name: string = DEFAULT_NAME): string {
  return tokenOf('outbox', name)
}

/** The token of the watched database of an outbox. */
export function getOutboxDbToken(name: string = DEFAULT_NAME): string {
  return tokenOf('outbox-db', name)
}

/** Injects the outbox: `constructor(@InjectOutbox() private readonly outbox: ShopOutbox)`. */
export function InjectOutbox(name?: string): ParameterDecorator & PropertyDecorator {
  return Inject(getOutboxToken(name))
}

/** Injects `outbox.db`, your own handle on which each transaction is a unit of work. */
export function InjectOutboxDb(name?: string): ParameterDecorator & PropertyDecorator {
  return Inject(getOutboxDbToken(name))
}

function tokenOf(what: string, name: string): string {
  return name === DEFAULT_NAME ? `aftercommit:${what}` : `aftercommit:${what}:${name}`
}
