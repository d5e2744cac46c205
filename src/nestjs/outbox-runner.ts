// The outbox follows the life of the application. Handlers are bound when all providers exist; start() comes with the
// bootstrap; stop() after the HTTP server has closed, so that what its last requests committed is still sent.
import type { DiscoveryService } from '@nestjs/core'
import { suggest } from '../checks/checks.ts'
import { partsOf } from '../upkeep/own-parts.ts'
import { warnOfUncalled } from '../upkeep/uncalled-handlers.ts'
import { findHandlers, type FoundHandler, handlersByType, invalid } from './discovery.ts'
import { bindHandlers } from './nest-handlers.ts'
import { type AnyOutbox, startsWithApplication } from './options.ts'
import { DEFAULT_NAME } from './tokens.ts'

export class OutboxRunner {
  readonly name: string
  readonly #outbox: AnyOutbox
  readonly #discovery: DiscoveryService

  constructor(name: string, outbox: AnyOutbox, discovery: DiscoveryService) {
    this.name = name
    this.#outbox = outbox
    this.#discovery = discovery
  }

  onModuleInit(): void {
    if (!this.#isOurs) return
    const found = findHandlers(this.#discovery)
    this.#checkNames(found)
    this.#bind(found.filter(({ outbox }) => outbox === this.name))
  }

  async onApplicationBootstrap(): Promise<void> {
    if (startsWithApplication(this.#outbox)) await this.#outbox.start()
  }

  async onApplicationShutdown(): Promise<void> {
    if (this.#isOurs) await this.#outbox.stop()
  }

  /** One that a test put in place of the module's is the test's own to start and to stop. */
  get #isOurs(): boolean {
    return startsWithApplication(this.#outbox) !== undefined
  }

  #bind(found: readonly FoundHandler[]): void {
    const { options, logger } = partsOf(this.#outbox)!
    const { catalog, destinations } = options
    const handlers = handlersByType(found, catalog)
    const bound = destinations.filter(({ publisher }) => bindHandlers(publisher, handlers))
    if (bound.length > 0) return warnOfUncalled(options, bound, handlers.keys(), logger)
    if (found.length === 0) return
    throw invalid(
      `${found[0]!.name}() would never be called, because no event goes to handlers; set the publisher of OutboxModule to nestHandlers(), or to a routerPublisher() with nestHandlers() in it`,
    )
  }

  /** Every outbox has a runner, so each runner can see the names of all. */
  #checkNames(found: readonly FoundHandler[]): void {
    const names = this.#discovery
      .getProviders()
      .flatMap(({ instance }) => (instance instanceof OutboxRunner ? [instance.name] : []))
    if (names.filter((name) => name === this.name).length > 1) {
      throw invalid(
        this.name === DEFAULT_NAME
          ? 'OutboxModule is set up twice; give one of the outboxes a name: OutboxModule.forRoot({ name })'
          : `two outboxes are called '${this.name}'; give each a name of its own`,
      )
    }
    const lost = found.find(({ outbox }) => !names.includes(outbox))
    if (!lost) return
    const which =
      lost.outbox === DEFAULT_NAME
        ? 'the outbox without a name, and there is none'
        : `the outbox '${lost.outbox}', which is not set up`
    throw invalid(`${lost.name}() handles events of ${which}; ${suggest(lost.outbox, names)}`)
  }
}
