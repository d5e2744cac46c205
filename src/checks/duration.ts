// Converts durations as people write them ('7s', '500ms') into milliseconds, once.
import { OutboxOptionsError } from '../errors.ts'

/** Milliseconds, or a number with a unit: `'250ms'`, `'7s'`, `'5m'`, `'2h'`, `'7d'`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const WITH_UNIT = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/
const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

export function toMilliseconds(name: string, value: unknown): number {
  const ms = typeof value === 'string' ? parse(value) : value
  if (typeof ms !== 'number' || !Number.isFinite(ms) || ms < 0) {
    throw new OutboxOptionsError(
      `${name} must be a duration such as '7s' (ms, s, m, h or d) or a number of milliseconds, got ${show(value)}`,
    )
  }
  return ms
}

/** Formats milliseconds for messages, in the largest unit that fits: 7000 -> '7s'. */
export function formatDuration(ms: number): string {
  const units = Object.entries(UNIT_MS).toReversed()
  const [unit, size] = units.find(([, length]) => ms >= length && ms % length === 0) ?? ['ms', 1]
  return `${ms / size}${unit}`
}

export function show(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`
  if (typeof value === 'function') return 'a function'
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'an invalid Date' : 'a Date'
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}

/** Whether it is a number with a unit. */
export function isDuration(text: string): boolean {
  return WITH_UNIT.test(text)
}

function parse(text: string): number {
  const [, amount, unit] = WITH_UNIT.exec(text) ?? []
  return amount === undefined || unit === undefined ? Number.NaN : Number(amount) * UNIT_MS[unit]!
}
