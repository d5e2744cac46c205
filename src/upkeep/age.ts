// A length of time as people say it.

const TIME_UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const

const HOUR_MS = 3_600_000

/** Such as `40 s`, `3 min`, `1 h 30 min` or `2 d 5 h`; less than a second in ms. */
export function formatAge(ms: number): string {
  const n = TIME_UNITS.findIndex(([, length]) => ms >= length)
  if (n === -1) return ms >= 999.5 ? '1 s' : `${Math.round(ms)} ms`
  const [unit, size] = TIME_UNITS[n]!
  if (unit === 's') return `${Math.round(ms / size)} s`
  const whole = `${Math.floor(ms / size)} ${unit}`
  if (size < HOUR_MS) return whole
  const [smaller, length] = TIME_UNITS[n + 1]!
  const rest = Math.floor((ms % size) / length)
  return rest === 0 ? whole : `${whole} ${rest} ${smaller}`
}
