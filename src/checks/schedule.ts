// When something that is done now and then is done next: at an interval, or as a cron expression says.
import { Cron } from 'croner'
import { type Duration, show } from './duration.ts'
import { OutboxOptionsError } from './errors.ts'
import { requireDuration } from './validate.ts'

/** A duration, or a cron expression such as `'0 3 * * *'`, read in the time zone of the process. */
export type Schedule = Duration | (string & {})

export interface ResolvedSchedule {
  /** How long it is from now to the next time. */
  readonly pauseMs: () => number
  /** Whether it is due at start as well. An hour on the clock is waited for. */
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
    `${option} must be a duration such as '1h' or a cron expression that comes true, such as '0 3 * * *', got ${show(pattern)}`,
  )
}
