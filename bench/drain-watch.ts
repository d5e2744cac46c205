// How fast a backlog goes out, seen from outside by the acks that its processes report.
import { setTimeout as delay } from 'node:timers/promises'
import { ContenderFailed } from './run-process.ts'

const START_MS = 60_000
const QUIET_MS = 500
/** Until then a process is still being compiled: its CPU time for an event falls to a half and less. */
const WARM_UP_ROWS = 20_000
/** After its first ack, for a drain that has not that many. */
const WARM_UP_MS = 2_000
const LEAST_MS = 500

export interface DrainRequest {
  readonly rows: number
  readonly payloadBytes: number
  readonly limitSeconds: number
  readonly instances?: number
}

export interface Mark {
  readonly acked: number
  readonly at: number
}

/**
 * Where a drain is measured from, and its last ack. It is over when nothing is left, or nothing happens any more, or
 * in time. One that is over before it was warm is measured from its first ack.
 */
export async function watchAcks(
  acked: () => number,
  { rows, limitSeconds, instances = 1 }: DrainRequest,
): Promise<[from: Mark, last: Mark]> {
  const mark = () => ({ acked: acked(), at: performance.now() })
  const begun = mark()
  let first: Mark | null = null
  let warm: Mark | null = null
  let last = begun
  for (;;) {
    await delay(5)
    const now = mark()
    if (now.acked > last.acked) last = now
    first ??= now.acked > 0 ? now : null
    if (!first && now.at > begun.at + START_MS) throw new ContenderFailed('it sent nothing')
    if (!first) continue
    if (isWarm(rows, now.acked, now.at - first.at)) warm ??= now
    const isQuiet = now.at > last.at + QUIET_MS
    const isDone = now.acked >= rows && (instances === 1 || isQuiet)
    if (!isDone && now.at < first.at + limitSeconds * 1_000) continue
    return [warm && last.at > warm.at + LEAST_MS ? warm : first, last]
  }
}

export function isWarm(rows: number, acked: number, ms: number): boolean {
  return rows > WARM_UP_ROWS ? acked >= WARM_UP_ROWS : ms > WARM_UP_MS
}
