// Asks before a change that cannot be undone, or that touches much. Without a terminal, only --yes counts as a yes.
import type { Count } from '../../store/outbox/outbox-store.ts'
import { CliError, usageError } from '../cli-error.ts'
import { EXIT } from '../exit-codes.ts'
import type { Output } from './output.ts'

export interface Change {
  /** What would be done, with its number: `retry 12 events`. */
  readonly what: string
  readonly yes: boolean
}

/** Throws if the answer is no, or if there is no terminal to ask on. */
export async function confirm(out: Output, { what, yes }: Change): Promise<void> {
  if (yes) return
  if (!out.isInteractive) {
    throw usageError(`this would ${what}; nothing was changed; pass --yes to do it`)
  }
  if (await out.ask(`This will ${what}. Go on?`)) return
  throw new CliError(EXIT.failed, 'nothing was changed')
}

/** `one event`, `12 events`, `at least 100000 events`. */
export function countEvents({ count, exact }: Count, noun = 'event'): string {
  if (count === 1 && exact) return `one ${noun}`
  return `${exact ? '' : 'at least '}${count} ${noun}s`
}
