// How numbers and times are written, everywhere on the page.
import type { CountAnswer } from '../../api.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const whole = new Intl.NumberFormat('en')
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const dateTime = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  timeZoneName: 'short',
})
const timeOfDay = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const dayAndTime = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
})

/** `1,234` */
export function number(value: number): string {
  return whole.format(value)
}

/** `1.2K`, for the axes of plots. */
export function shortNumber(value: number): string {
  return short.format(value)
}

/** `1,234`, or `10,000+` when there are at least as many. */
export function count({ count: value, exact }: CountAnswer): string {
  return `${number(value)}${exact ? '' : '+'}`
}

/** `1 event`, `at least 10,000 events`, `events, not counted to the end` */
export function countOf({ count: value, exact }: CountAnswer, one: string, many: string): string {
  // The time to count was over before one was found.
  if (value === 0 && !exact) return `${many}, not counted to the end`
  return `${exact ? '' : 'at least '}${number(value)} ${value === 1 ? one : many}`
}

/** `0.4`, `12`, `1,234`: events a second. */
export function rate(value: number): string {
  if (value === 0 || value >= 10) return number(Math.round(value))
  return value < 0.1 ? value.toFixed(2) : value.toFixed(1)
}

/** `850 ms`, `4.2 s`, `38 s`, `5 min`, `2 h 5 min`, `3 d 4 h` */
export function duration(ms: number): string {
  if (ms < SECOND) return `${ms > 0 && ms < 10 ? Number(ms.toFixed(1)) : Math.round(ms)} ms`
  if (ms < 10 * SECOND) return `${Math.floor(ms / 100) / 10} s`
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`
  if (ms < DAY) return twoUnits(ms, HOUR, 'h', MINUTE, 'min')
  return twoUnits(ms, DAY, 'd', HOUR, 'h')
}

function twoUnits(ms: number, big: number, bigName: string, small: number, smallName: string) {
  const rest = Math.floor((ms % big) / small)
  return `${number(Math.floor(ms / big))} ${bigName}${rest > 0 ? ` ${rest} ${smallName}` : ''}`
}

/** `just now`, `12 s ago`, `in 3 min` */
export function relative(at: number, now: number): string {
  const ms = now - at
  if (Math.abs(ms) < SECOND) return 'just now'
  const length = duration(Math.floor(Math.abs(ms) / SECOND) * SECOND)
  return ms > 0 ? `${length} ago` : `in ${length}`
}

/** To the millisecond, in the reader's time zone. */
export function exactTime(at: string): string {
  return dateTime.format(new Date(at))
}

/** `14:05` */
export function clockTime(at: number): string {
  return timeOfDay.format(at)
}

/** `18 Nov, 14:05` */
export function shortTime(at: string): string {
  return dayAndTime.format(new Date(at))
}

/** Indented if it is JSON, and as it is if not. */
export function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** With a capital letter, as messages of the library have none. */
export function toSentence(text: string): string {
  // A command is written as it is typed.
  if (text.startsWith('aftercommit ')) return text
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
}
