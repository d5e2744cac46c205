// How long a rejected event rests: exponential with jitter, so that replicas do not retry in step.

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
