// About how long a turn takes. Only the estimate of a run's length depends on it: rates are those of an earlier run, in
// units of work or rows a second.
import type { DrainRequest } from './drain-watch.ts'
import { FIRST_UNITS, type Load, MIN_UNITS, NEW_LOAD, WARM_UP } from './job.ts'
import { nameOf } from './results.ts'
import { FROM_MEMORY, type Variant } from './turn.ts'

/** To start a process, make its tables and end it. */
export const PROCESS_SECONDS = 3
/** To make a database and a topic. */
const PLACE_SECONDS = 1
/** Between a load and the next. */
const PAUSE_SECONDS = 1

const UNITS = 1_000
const UNITS_OF: Record<string, number> = {
  'graphile-worker (tuned)': 750,
  'pg-boss (tuned)': 750,
  'pg-transactional-outbox-wal (tuned)': 600,
  'nest-native-messaging (tuned)': 500,
  'pg-transactional-outbox-polling (tuned)': 160,
  'pg-transactional-outbox-wal': 370,
  'nest-native-messaging': 300,
  'graphile-worker': 280,
  'pg-transactional-outbox-polling': 140,
  'pg-boss': 0.5,
}

const ROWS = 13_000
const ROWS_OF: Record<string, number> = {
  'kafkajs-only': 35_000,
  'platformatic-only': 35_000,
  'pg-boss (tuned)': 10_000,
  'graphile-worker (tuned)': 5_500,
  'pg-transactional-outbox-wal (tuned)': 1_200,
  'nest-native-messaging (tuned)': 850,
  'pg-transactional-outbox-polling (tuned)': 80,
  textbook: 16,
}
/** Rows that are written a second before a drain. */
const ROWS_LEFT_BEHIND = 20_000

/** The process has to start for its first load and to get warm, and knows a load of which it is not the first turn. */
export function secondsOfLoad(variant: Variant, job: Load, is: 'first' | 'new' | 'known'): number {
  const rate = UNITS_OF[nameOf(variant)] ?? UNITS
  const { units, seconds } = is === 'first' ? (job.warmUp ?? WARM_UP) : NEW_LOAD
  const warm = Math.max(FIRST_UNITS / rate, Math.min(seconds, units / rate))
  const measured = Math.max(job.seconds, MIN_UNITS / rate) + PAUSE_SECONDS
  if (is === 'known') return measured
  return warm + measured + (is === 'first' ? PROCESS_SECONDS + PLACE_SECONDS : 0)
}

export function secondsOfDrain(variant: Variant, request: DrainRequest): number {
  const { rows, limitSeconds } = request
  const rate = ROWS_OF[nameOf(variant)] ?? ROWS
  const isWritten = !FROM_MEMORY.includes(variant.contender)
  const filling = isWritten ? PROCESS_SECONDS + rows / ROWS_LEFT_BEHIND : 0
  return PLACE_SECONDS + filling + PROCESS_SECONDS + Math.min(limitSeconds, rows / rate)
}
