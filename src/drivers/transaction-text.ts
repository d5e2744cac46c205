// Statements that begin and end transactions: how ours begin, and how the application's are recognised. If the
// application ended a unit of work's transaction itself, the outbox would publish events that were never saved.
import { OutboxError, OutboxOptionsError } from '../errors.ts'
import type { TransactionSettings } from './driver.ts'

/** The settings that follow BEGIN. */
export function settingsText(settings: TransactionSettings = {}): string {
  const { isolationLevel, accessMode, deferrable } = settings
  const parts = [isolationLevel && `isolation level ${isolationLevel}`, accessMode]
  if (deferrable !== undefined) parts.push(deferrable ? 'deferrable' : 'not deferrable')
  return parts.filter(Boolean).join(' ')
}

/** Reads the settings as postgres.js takes them: `sql.begin('isolation level serializable', work)`. */
export function parseSettings(text: string): TransactionSettings {
  const given = text.toLowerCase().replaceAll(/[\s,]+/g, ' ')
  const found = [...given.matchAll(SETTING)].map(({ groups }) => groups!)
  const read = (name: string) => found.find((groups) => groups[name])?.[name]
  const [level, mode, deferrable] = [read('level'), read('mode'), read('deferrable')]
  if (given.replaceAll(SETTING, '').trim() !== '') {
    throw new OutboxOptionsError(
      `begin() cannot read '${text}'; write 'isolation level ...', 'read only' or 'read write', and 'deferrable'`,
    )
  }
  return {
    ...(level && { isolationLevel: level as 'serializable' }),
    ...(mode && { accessMode: mode as 'read only' }),
    ...(deferrable && { deferrable: deferrable === 'deferrable' }),
  }
}

const SETTING =
  /isolation level (?<level>read (?:un)?committed|repeatable read|serializable)|(?<mode>read only|read write)|(?<deferrable>(?:not )?deferrable)/g

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
    `${statement} is refused inside a unit of work, which begins and ends its transaction itself; return to commit, throw to roll back, and nest with what your client has for it: tx.transaction(work), tx.savepoint(work) or tx.$transaction(work)`,
  )
}
