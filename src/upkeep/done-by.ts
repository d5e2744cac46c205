// Who makes a change, for the log.
import { rejectUnknown, requireName } from '../checks/checks.ts'

/** For the line that the change logs. */
export interface DoneBy {
  /** Who makes the change. */
  by?: string
}

/** Fields of the log line. */
export function doneBy(owner: string, details: DoneBy): { readonly by?: string } {
  rejectUnknown(owner, details, ['by'])
  return details.by === undefined ? {} : { by: requireName('by', details.by) }
}
