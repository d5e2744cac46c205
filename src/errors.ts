// Every error the library raises, each with a code that stays stable across versions.
// Messages name the value and the remedy; payloads never appear in them.

/** The closed list of codes; docs/reference/errors.md explains each. */
export const ERROR_CODES = [
  'OPTIONS_INVALID',
  'NO_UNIT_OF_WORK',
  'UNIT_OF_WORK_OVER',
  'NESTED',
  'TRANSACTION_CONTROL',
  'ROLLED_BACK',
  'EVENT_INVALID',
  'EVENT_UNKNOWN',
  'NO_ROUTE',
  'PAYLOAD_INVALID',
  'SCHEMA_FAILED',
  'PAYLOAD_NOT_JSON',
  'PAYLOAD_TOO_LARGE',
  'BACKLOG_FULL',
  'MESSAGE_UNREADABLE',
  'STORE_FAILED',
  'STORE_TIMEOUT',
  'TABLE_MISSING',
  'PUBLISH_FAILED',
  'PUBLISH_TIMEOUT',
  'SERIALIZER_FAILED',
  'NO_HANDLER',
  'HANDLER_FAILED',
  'HANDLER_TIMEOUT',
] as const

export type OutboxErrorCode = (typeof ERROR_CODES)[number]

export class OutboxError extends Error {
  override readonly name: string = 'OutboxError'
  readonly code: OutboxErrorCode

  constructor(code: OutboxErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

/** createOutbox(), createInbox() or a publisher was given something it cannot work with. */
export class OutboxOptionsError extends OutboxError {
  override readonly name = 'OutboxOptionsError'

  constructor(message: string) {
    super('OPTIONS_INVALID', message)
  }
}

export function noTransaction(): OutboxOptionsError {
  return new OutboxOptionsError(
    'tx must be an open transaction, as withOutbox() or once() hands it out, not a database or a client',
  )
}

/** An event was refused at emit. The unit of work rolls back; nothing is saved. */
export class EventRefusedError extends OutboxError {
  override readonly name = 'EventRefusedError'
}

/** The inbox cannot tell which event a message is. Nothing is recorded, and the work is not called. */
export class UnreadableMessageError extends OutboxError {
  override readonly name = 'UnreadableMessageError'

  constructor(message: string) {
    super('MESSAGE_UNREADABLE', message)
  }
}

/** A statement of the outbox, or of the inbox, failed. `cause` is the driver's own error. */
export class StoreError extends OutboxError {
  override readonly name = 'StoreError'
}

/** Postgres takes nothing more in a transaction in which a statement has failed, and does not commit it. */
export function rolledBack(when: string, options?: { cause: unknown }): StoreError {
  return new StoreError(
    'ROLLED_BACK',
    `${when}: a statement of the transaction had failed and its error was caught, so Postgres rolls it back and nothing is saved; let the error out of the work, or run what may fail in a savepoint`,
    options,
  )
}

/** A publisher could not deliver. Seen in lifecycle events and in `last_error`, never by the caller. */
export class PublishError extends OutboxError {
  override readonly name = 'PublishError'
}

export function overError(what: string): OutboxError {
  return new OutboxError(
    'UNIT_OF_WORK_OVER',
    `${what} after its unit of work had ended; await everything that belongs to it`,
  )
}

/** The text of anything that was thrown, fit for a text column: no NUL, no broken surrogates, bounded. */
export function describeError(thrown: unknown): string {
  const text = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown)
  // The cut comes first: it may go through a surrogate pair.
  return text.slice(0, 2_000).replaceAll('\u0000', '').toWellFormed()
}

export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}

/** What was thrown and where, without its text, which may quote the payload. */
export function withoutText(thrown: unknown): Error {
  const safe = new Error('its text is left out, as it may quote the payload')
  if (!(thrown instanceof Error)) return safe
  const { name, message, stack = '' } = thrown
  const frames = stack.indexOf(`${message}\n    at `)
  safe.name = name
  safe.stack = `${name}: ${safe.message}${frames < 0 ? '' : stack.slice(frames + message.length)}`
  return safe
}
