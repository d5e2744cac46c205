// How long to wait before the next try, after an event was rejected and after a statement failed.

export interface BackoffOptions {
  readonly backoffBaseMs: number
  readonly backoffMaxMs: number
}

/** min(max, base * 2^(attempt - 1)) + a jitter of up to base. */
export function backoffMs(attempt: number, options: BackoffOptions, random = Math.random): number {
  const { backoffBaseMs, backoffMaxMs } = options
  const exponential = Math.min(backoffMaxMs, backoffBaseMs * 2 ** (attempt - 1))
  return Math.round(exponential + random() * backoffBaseMs)
}

/** How long a background step rests after failing that many times in a row: 100 ms, doubling to 5 s. */
export function restMs(failures: number): number {
  return Math.min(100 * 2 ** (failures - 1), 5_000)
}
