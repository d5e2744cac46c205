// Checks for option objects, shared by the outbox, its publishers and the inbox. Each message names the option, the
// value and the remedy.
import leven from 'leven'
import { formatDuration, show, toMilliseconds } from './duration.ts'
import { OutboxOptionsError } from '../errors.ts'
import { isStorable } from './storable.ts'

/** `renamed`: the new name of each renamed option, by its old name. */
export function rejectUnknown(
  owner: string,
  given: unknown,
  known: readonly string[],
  renamed: Readonly<Record<string, string>> = {},
): void {
  if (typeof given !== 'object' || given === null) {
    throw new OutboxOptionsError(`${owner} takes an object with options, got ${show(given)}`)
  }
  for (const key of Object.keys(given)) {
    if (known.includes(key)) continue
    if (Object.hasOwn(renamed, key)) {
      throw new OutboxOptionsError(`${owner}: the option '${key}' is now ${renamed[key]}`)
    }
    throw new OutboxOptionsError(`${owner} has no option '${key}'; ${suggest(key, known)}`)
  }
}

/** For what was passed without the braces around it. Never shows it: it may contain a password. */
export function missesBraces(owner: string, got: string, remedy: string): OutboxOptionsError {
  return new OutboxOptionsError(`${owner} takes an object with options, got ${got}; ${remedy}`)
}

export function hasMethod(value: unknown, method: string): boolean {
  return typeof (value as Record<string, unknown> | null | undefined)?.[method] === 'function'
}

/** The remedy for an unknown name. */
export function suggest(name: string, known: readonly string[]): string {
  const near = nearest(name, known)
  return near ? `did you mean '${near}'?` : `expected one of ${known.join(', ')}`
}

/** What was probably meant: a name within a typo's distance, or one that the given name begins with. */
function nearest(key: string, known: readonly string[]): string | undefined {
  const near = known.filter((name) => {
    const distance = leven(name, key)
    // Less may be wrong in a short name: any name of two letters is two letters away from any other.
    const isTypo = distance <= Math.max(2, key.length / 4) && distance <= key.length / 2
    return isTypo || key.startsWith(name)
  })
  return near.toSorted((a, b) => leven(a, key) - leven(b, key))[0]
}

export function requireMethods(
  option: string,
  value: unknown,
  methods: readonly string[],
  what: string,
): void {
  if (!methods.every((method) => hasMethod(value, method))) {
    throw new OutboxOptionsError(`${option} must be ${what}`)
  }
}

export function requireBoolean(option: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value
  throw new OutboxOptionsError(`${option} must be true or false, got ${show(value)}`)
}

export function requireCount(option: string, value: unknown, max: number, min = 1): number {
  if (Number.isInteger(value)) {
    const count = value as number
    if (count >= min && count <= max) return count
  }
  throw new OutboxOptionsError(
    `${option} must be a whole number from ${min} to ${max}, got ${show(value)}`,
  )
}

/** Node's timers take no more; given more, they fire at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1
const TEN_YEARS_MS = 3_653 * 86_400_000

/** For a time that the process waits. */
export function requireDuration(option: string, value: unknown, minMs: number): number {
  const ms = toMilliseconds(option, value)
  if (ms < minMs) {
    throw new OutboxOptionsError(
      `${option} must be at least ${formatDuration(minMs)}, got ${show(value)}`,
    )
  }
  if (ms > MAX_TIMER_MS) {
    throw new OutboxOptionsError(`${option} must be shorter than 25 days, got ${show(value)}`)
  }
  return ms
}

/** For an age that only the database's clock has to reach. */
export function requireAge(option: string, value: unknown): number {
  const ms = toMilliseconds(option, value)
  if (ms < 1_000) {
    throw new OutboxOptionsError(
      `${option} must be at least a second, got ${show(value)}; did you mean days, such as '7d'?`,
    )
  }
  if (ms <= TEN_YEARS_MS) return ms
  throw new OutboxOptionsError(
    `${option} must be at most ten years, got ${show(value)}; to keep everything, set cleanup: false`,
  )
}

export function requireName(option: string, value: unknown): string {
  if (typeof value === 'string' && value !== '' && isStorable(value)) return value
  throw new OutboxOptionsError(`${option} must be a non-empty string, got ${show(value)}`)
}

export function requireOneOf<T>(option: string, value: T, allowed: readonly T[]): T {
  if (allowed.includes(value)) return value
  throw new OutboxOptionsError(
    `${option} must be one of ${allowed.map(show).join(', ')}, got ${show(value)}`,
  )
}

/** Treats an undefined option as one that was not given. */
export function withoutUndefined<T extends object>(given: T): T {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as T
}
