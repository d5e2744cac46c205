// Statements that begin and end transactions: how ours begin, and how the application's are recognised. If the
// application ended a unit of work's transaction itself, the outbox would publish events that were never saved.
import { noTransaction, OutboxError, OutboxOptionsError } from '../errors.ts'
import type { TransactionSettings } from './driver.ts'

/** The settings that follow BEGIN. */
export function settingsText(settings: TransactionSettings = {}): string {
  const { isolationLevel, accessMode, deferrable } = settings
  const parts = [isolationLevel && `isolation level ${isolationLevel}`, accessMode]
  if (deferrable !== undefined) parts.push(deferrable ? 'deferrable' : 'not deferrable')
  return parts.filter(Boolean).join(' ')
}

/** Reads what settingsText() writes, as postgres.js takes it: `sql.begin('isolation level serializable', work)`. */
export function parseSettings(text: string): TransactionSettings {
  const given = text
    .trim()
    .toLowerCase()
    .replaceAll(/[\s,]+/g, ' ')
  const { level, mode, deferrable } = SETTINGS.exec(given)?.groups ?? {}
  const settings: TransactionSettings = {
    ...(level && { isolationLevel: level as 'serializable' }),
    ...(mode && { accessMode: mode as 'read only' }),
    ...(deferrable && { deferrable: deferrable === 'deferrable' }),
  }
  if (settingsText(settings) === given) return settings
  throw new OutboxOptionsError(
    `begin() cannot read '${text}'; write 'isolation level ...', 'read only' or 'read write', and 'deferrable', in this order`,
  )
}

const SETTINGS =
  /^(?:isolation level (?<level>read (?:un)?committed|repeatable read|serializable))? ?(?<mode>read only|read write)? ?(?<deferrable>(?:not )?deferrable)?$/

const NO_ACTIVE_TRANSACTION = '25P01'

/** Rejects if no transaction is open on a connection that the application controls. Changes nothing. */
export async function requireOpen(send: (text: string) => PromiseLike<unknown>): Promise<void> {
  try {
    await send('savepoint aftercommit_open; release savepoint aftercommit_open')
  } catch (error) {
    if ((error as { code?: unknown } | null)?.code !== NO_ACTIVE_TRANSACTION) throw error
    throw noTransaction()
  }
}

const CONTROL =
  /^\s*(begin|start\s+transaction|commit|end|rollback|abort|savepoint|release|prepare\s+transaction)\b/i
const MENTIONS = /\b(begin|start|commit|end|rollback|abort|savepoint|release|prepare)\b/i

/** Quoted strings and names, dollar-quoted bodies, comments: nothing inside them is a statement. */
const OPAQUE =
  /\be'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$.*?\$\1\$|--[^\n]*|\/\*.*?\*\//gis

/** Throws if any statement in the text would begin or end the transaction, or touch a savepoint in it. */
export function refuseControl(text: string): void {
  // The body of a function in standard SQL has its own BEGIN and END.
  if (!MENTIONS.test(text) || /\bbegin\s+atomic\b/i.test(text)) return
  for (const statement of text.replaceAll(OPAQUE, ' ').split(';')) {
    const [, keyword] = CONTROL.exec(statement) ?? []
    if (keyword) throw controlError(keyword.replaceAll(/\s+/g, ' ').toUpperCase())
  }
}

export function controlError(statement: string): OutboxError {
  return new OutboxError(
    'TRANSACTION_CONTROL',
    `${statement} is refused inside a unit of work, which begins and ends its transaction itself; return to commit, throw to roll back, and nest with tx.savepoint(work)`,
  )
}
