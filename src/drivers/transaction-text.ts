// The statements that begin and end transactions: how ours begin, and how those of others are recognised. A unit
// of work that was ended behind its back would publish what was never saved.
import { OutboxError } from '../errors.ts'
import type { TransactionSettings } from './driver.ts'

/** What follows BEGIN. */
export function settingsText(settings: TransactionSettings = {}): string {
  const { isolationLevel, accessMode, deferrable } = settings
  const parts = [isolationLevel && `isolation level ${isolationLevel}`, accessMode]
  if (deferrable !== undefined) parts.push(deferrable ? 'deferrable' : 'not deferrable')
  return parts.filter(Boolean).join(' ')
}

const CONTROL =
  /^\s*(begin|start\s+transaction|commit|end|rollback|abort|savepoint|release|prepare\s+transaction)\b/i
const MENTIONS = /\b(begin|start|commit|end|rollback|abort|savepoint|release|prepare)\b/i

/** Quoted texts and names, bodies between dollars, comments: whatever they hold is no statement. */
const OPAQUE =
  /\be'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$.*?\$\1\$|--[^\n]*|\/\*.*?\*\//gis

/** Throws if any of the statements in the text would end the transaction or open a savepoint in it. */
export function refuseControl(text: string): void {
  // The body of a function in standard SQL has a BEGIN and an END of its own.
  if (!MENTIONS.test(text) || /\bbegin\s+atomic\b/i.test(text)) return
  for (const statement of text.replaceAll(OPAQUE, ' ').split(';')) {
    const [, keyword] = CONTROL.exec(statement) ?? []
    if (keyword) throw controlError(keyword.replaceAll(/\s+/g, ' ').toUpperCase())
  }
}

export function controlError(statement: string): OutboxError {
  return new OutboxError(
    'TRANSACTION_CONTROL',
    `${statement} was sent inside a unit of work, which begins and ends its transaction itself; return to commit, throw to roll back, and nest with tx.savepoint(work)`,
  )
}
