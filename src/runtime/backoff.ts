// How long to wait before the next attempt, after an event was rejected or a statement failed.

export interface BackoffOptions {
  readonly backoffBaseMs: number
  readonly backoffMaxMs: number
}

/** Far past any maximum. Without it 0 * 2^1024, which is not a number, would be written into a row. */
const MOST_DOUBLINGS = 64

/** min(max, base * 2^(attempt - 1)) plus a jitter of up to base. */
export function backoffMs(attempt: number, options: BackoffOptions, random = Math.random): number {
  const { backoffBaseMs, backoffMaxMs } = options
  const exponential = Math.min(
    backoffMaxMs,
    backoffBaseMs * 2 ** Math.min(attempt - 1, MOST_DOUBLINGS),
  )
  return Math.round(exponential + random() * backoffBaseMs)
}

/** How long a background step rests after this many failures in a row: 100 ms, doubling up to 5 s. */
export function restMs(failures: number): number {
  return Math.min(100 * 2 ** (failures - 1), 5_000)
}
