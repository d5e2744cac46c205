// aftercommit/nestjs: an outbox inside a NestJS application. No other room imports it.
export { OutboxHealthIndicator, type OutboxHealthResult } from './health-indicator.ts'
export { nestHandlers, type NestHandlersOptions } from './nest-handlers.ts'
export { OnOutboxEvent, type OnOutboxEventOptions } from './on-outbox-event.ts'
export type { OutboxModuleOptions } from './options.ts'
export {
  OutboxModule,
  type OutboxModuleAsyncOptions,
  type OutboxModuleName,
} from './outbox-module.ts'
export { getOutboxDbToken, getOutboxToken, InjectOutbox, InjectOutboxDb } from './tokens.ts'
export type { HandledEvent, HandledEventOf } from '../publishers/handlers.ts'
