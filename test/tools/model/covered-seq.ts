// The rule that came before sets: a lane kept the highest seq that it had taken, and took that for all events up to
// it. An event below it may have committed later, and never have been in the lane. The model has to find that.
import type { Follows, Table } from './table.ts'

/** What the save returned then: nothing to go by if any of those events was not held by the same process. */
export function inOwnHands(follows: Follows, token: number, table: Table): Follows {
  if (follows === 'unknown') return follows
  return follows.every((seq) => table[seq]!.token === token) ? follows : 'unknown'
}

/** Whether the event goes through the lane; what the lane covers changes with it. */
export function takeByNumber(
  { seq, key }: { readonly seq: number; readonly key: string },
  follows: Follows,
  covered: Record<string, number>,
): boolean {
  const coveredSeq = covered[key] ?? -1
  const isTaken = follows !== 'unknown' && (follows.at(-1) ?? -1) <= coveredSeq
  covered[key] = isTaken ? Math.max(coveredSeq, seq) : Math.min(coveredSeq, seq - 1)
  return isTaken
}
