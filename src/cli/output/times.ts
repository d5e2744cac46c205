// Times as people say them: `3 min ago`, `in 40 s`, `14:05:09`.
import { formatAge } from '../../upkeep/age.ts'

const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })

const MOMENT_MS = 1_000

export function formatTime(date: Date, nowMs: number): string {
  const ms = date.getTime() - nowMs
  if (Math.abs(ms) < MOMENT_MS) return 'just now'
  return ms < 0 ? `${formatAge(-ms)} ago` : `in ${formatAge(ms)}`
}

export function formatClockTime(date: Date): string {
  return clock.format(date)
}
