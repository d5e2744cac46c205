// When a recurring task runs next: at an interval, or by a cron expression.
import { Cron } from 'croner'
import { type Duration, show } from './duration.ts'
import { OutboxOptionsError } from '../errors.ts'
import { requireDuration } from './checks.ts'

/** A duration, or a cron expression such as `'0 3 * * *'` in the time zone of the process. */
export type Schedule = Duration | (string & {})

export interface ResolvedSchedule {
  /** How long from now to the next run. */
  readonly pauseMs: () => number
  /** Whether the task also runs at start. An interval does; a cron expression waits for its time. */
  readonly atOnce: boolean
}

export function requireSchedule(option: string, value: unknown): ResolvedSchedule {
  if (typeof value === 'boolean') {
    throw new OutboxOptionsError(
      `${option} must be a duration such as '1h', a cron expression such as '0 3 * * *', or false, got true`,
    )
  }
  const isCron = typeof value === 'string' && /\s|^@/.test(value.trim())
  if (!isCron) {
    const ms = requireDuration(option, value, 1_000)
    return { pauseMs: () => ms, atOnce: true }
  }
  const cron = parse(option, value)
  return { pauseMs: () => cron.msToNext() ?? Number.POSITIVE_INFINITY, atOnce: false }
}

function parse(option: string, pattern: string): Cron {
  try {
    const cron = new Cron(pattern, { paused: true })
    if (cron.nextRun()) return cron
  } catch {}
  throw new OutboxOptionsError(
    `${option} must be a duration such as '1h' or a cron expression that matches a future time, such as '0 3 * * *', got ${show(pattern)}`,
  )
}
