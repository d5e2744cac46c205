// Every error that the library raises, each with a code that stays the same across versions.
// Messages name the value and the remedy, and never include payloads.

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
  'PAYLOAD_WRITE_FAILED',
  'BACKLOG_FULL',
  'MESSAGE_UNREADABLE',
  'STORE_FAILED',
  'STORE_TIMEOUT',
  'TABLE_MISSING',
  'SCHEMA_NEWER',
  'CDC_NOT_READY',
  'PUBLISH_FAILED',
  'PUBLISH_TIMEOUT',
  'PAYLOAD_READ_FAILED',
  'SERIALIZER_FAILED',
  'HANDLER_INVALID',
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

/** createOutbox(), createInbox() or a publisher received an option that cannot work. */
export class OutboxOptionsError extends OutboxError {
  override readonly name = 'OutboxOptionsError'

  constructor(message: string) {
    super('OPTIONS_INVALID', message)
  }
}

export function noTransaction(): OutboxOptionsError {
  return new OutboxOptionsError(
    'tx must be an open transaction: what transaction() or begin() passes to its callback, or a client after BEGIN and before COMMIT; a database, a pool or a transaction that has ended is not one; await emitIn() and cancelIn() before the transaction ends',
  )
}

/** emit() refused an event. The unit of work rolls back and nothing is saved. */
export class EventRefusedError extends OutboxError {
  override readonly name = 'EventRefusedError'
}

/** The inbox cannot identify the event in a message. It records nothing and does not call the work. */
export class UnreadableMessageError extends OutboxError {
  override readonly name = 'UnreadableMessageError'

  constructor(message: string) {
    super('MESSAGE_UNREADABLE', message)
  }
}

/** A statement of the outbox or the inbox failed. `cause` is the driver's error, without parameters or row data. */
export class StoreError extends OutboxError {
  override readonly name = 'StoreError'
}

/** After a statement has failed, Postgres accepts no others in that transaction and does not commit it. */
export function rolledBack(when: string, options?: { cause: unknown }): StoreError {
  return new StoreError(
    'ROLLED_BACK',
    `${when}: an earlier statement of the transaction failed and its error was caught, so Postgres rolls the transaction back and nothing is saved; do not catch the error inside the work, or run the statement in a savepoint`,
    options,
  )
}

/** A publisher could not deliver. Appears in lifecycle events and in `last_error`; never thrown to the caller. */
export class PublishError extends OutboxError {
  override readonly name = 'PublishError'
}

export function overError(what: string): OutboxError {
  return new OutboxError(
    'UNIT_OF_WORK_OVER',
    `${what} after its unit of work had ended; await everything that belongs to it`,
  )
}

/** The unit of work is open, but the nested transaction that the code belongs to has ended. */
export function nestedOverError(call = 'emit()'): OutboxError {
  return new OutboxError(
    'UNIT_OF_WORK_OVER',
    `${call} was called after its nested transaction had ended; await everything that belongs to the nested transaction inside it`,
  )
}

/** The text of any thrown value, safe for a text column: no NUL, no lone surrogates, limited in length. */
export function describeError(thrown: unknown): string {
  const text = readSafely(() =>
    thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown),
  )
  // Cut first, because the cut may split a surrogate pair.
  return text.slice(0, 2_000).replaceAll('\u0000', '').toWellFormed()
}

export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(messageOf(thrown))
}

export function messageOf(thrown: unknown): string {
  return readSafely(() => (thrown instanceof Error ? thrown.message : String(thrown)))
}

const UNREADABLE = 'a thrown value that cannot be read'

// Handlers and publishers may throw anything, even an object without text or with a getter that throws. Their event must
// fail all the same, and nothing else with it.
function readSafely(read: () => string): string {
  try {
    const text: unknown = read()
    if (typeof text === 'string') return text
  } catch {}
  return UNREADABLE
}

/** Whether a hook of the application asks to be called again later, by an error with `retriable: true`, as kafkajs has it. */
export function isRetriable(thrown: unknown): boolean {
  try {
    return (thrown as { retriable?: unknown } | null | undefined)?.retriable === true
  } catch {
    return false
  }
}

/** The name and the stack of a thrown error, without its message, which may quote the payload. */
export function withoutText(thrown: unknown): Error {
  const safe = new Error('the message is left out because it may quote the payload')
  if (!(thrown instanceof Error)) return safe
  const read = (field: 'name' | 'message' | 'stack') => readSafely(() => thrown[field] as string)
  const [name, message, stack] = [read('name'), read('message'), read('stack')]
  const frames = stack.indexOf(`${message}\n    at `)
  safe.name = name
  safe.stack = `${name}: ${safe.message}${frames < 0 ? '' : stack.slice(frames + message.length)}`
  return safe
}
