// The module. Its providers are in a global core, so that any module can inject the outbox. The runner is outside of it, because
// Nest shuts global modules down last, after the module that closes the database.
import {
  type ConfigurableModuleAsyncOptions,
  ConfigurableModuleBuilder,
  type DynamicModule,
  Module,
  type Provider,
} from '@nestjs/common'
import { DiscoveryModule, DiscoveryService } from '@nestjs/core'
import { requireName } from '../checks/checks.ts'
import { OutboxHealthIndicator } from './health-indicator.ts'
import { type AnyOutbox, makeOutbox, type OutboxModuleOptions } from './options.ts'
import { OutboxRunner } from './outbox-runner.ts'
import { DEFAULT_NAME, getOutboxDbToken, getOutboxToken } from './tokens.ts'
import { watchedDb } from './watched-db.ts'

export interface OutboxModuleName {
  /** For several outboxes in one application: @InjectOutbox(name), @OnOutboxEvent(type, { outbox: name }). */
  name?: string
}

/** useFactory with inject, or useClass or useExisting with a class that has createOutboxOptions(). */
export type OutboxModuleAsyncOptions = ConfigurableModuleAsyncOptions<
  OutboxModuleOptions,
  'createOutboxOptions'
> &
  OutboxModuleName

const OPTIONS = Symbol('aftercommit:options')

const { ConfigurableModuleClass } = new ConfigurableModuleBuilder<OutboxModuleOptions>({
  optionsInjectionToken: OPTIONS,
})
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createOutboxOptions')
  .setExtras<OutboxModuleName>({ name: DEFAULT_NAME }, (definition, { name = DEFAULT_NAME }) => {
    const providers = providersOf(requireName('name', name))
    return {
      ...definition,
      global: true,
      providers: [...(definition.providers ?? []), ...providers],
      exports: providers,
    }
  })
  .build()

class OutboxCoreModule extends ConfigurableModuleClass {}

// oxlint-disable-next-line typescript/no-extraneous-class -- a module of Nest is a class
export class OutboxModule {
  /** The options of createOutbox(). Import it once, in the root module; every module can inject the outbox. */
  static forRoot(options: OutboxModuleOptions & OutboxModuleName): DynamicModule {
    return withRunner(OutboxCoreModule.forRoot(options), options.name)
  }

  /** For options that need other providers, such as a database or a configuration. */
  static forRootAsync(options: OutboxModuleAsyncOptions): DynamicModule {
    return withRunner(OutboxCoreModule.forRootAsync(options), options.name)
  }
}
Module({})(OutboxModule)
Module({})(OutboxCoreModule)

function providersOf(name: string): Provider[] {
  const outbox: Provider = {
    provide: getOutboxToken(name),
    useFactory: (options: OutboxModuleOptions) => makeOutbox(options, name),
    inject: [OPTIONS],
  }
  const inject = [getOutboxToken(name)]
  const db: Provider = { provide: getOutboxDbToken(name), useFactory: watchedDb, inject }
  if (name !== DEFAULT_NAME) return [outbox, db]
  const health: Provider = {
    provide: OutboxHealthIndicator,
    useFactory: (made: AnyOutbox) => new OutboxHealthIndicator(made),
    inject,
  }
  return [outbox, db, health]
}

function withRunner(core: DynamicModule, name: string = DEFAULT_NAME): DynamicModule {
  const runner: Provider = {
    provide: OutboxRunner,
    useFactory: (outbox: AnyOutbox, discovery: DiscoveryService) =>
      new OutboxRunner(name, outbox, discovery),
    inject: [getOutboxToken(name), DiscoveryService],
  }
  return { module: OutboxModule, imports: [core, DiscoveryModule], providers: [runner] }
}
