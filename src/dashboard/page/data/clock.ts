// The database's clock as this browser knows it, so that "2 min ago" is right on a laptop whose clock is not; and one shared tick for
// all texts that age.
import { useEffect, useState } from 'preact/hooks'

let aheadMs = 0

export function learnTime(now: string): void {
  const at = Date.parse(now)
  if (!Number.isNaN(at)) aheadMs = at - Date.now()
}

/** Milliseconds since 1970, by the database's clock. */
export function databaseNow(): number {
  return Date.now() + aheadMs
}

/** Renders the component again every so often. */
export function useTick(everyMs: number): void {
  const [, setTick] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => setTick((tick) => tick + 1), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
}
