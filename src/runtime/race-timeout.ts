// Waits for a promise, but no longer than a limit. A limit in the past counts as 0.

export interface RaceOptions {
  /** Whether the timer keeps an otherwise idle process alive. @default false */
  readonly keepAlive?: boolean
}

export async function raceTimeout<T>(
  promise: Promise<T>,
  ms: number,
  { keepAlive = false }: RaceOptions = {},
): Promise<T | 'late'> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), Math.max(0, ms))
    if (!keepAlive) timer.unref()
  })
  try {
    return await Promise.race([promise, timeout])
  } finally {
    clearTimeout(timer)
  }
}
