// Checks of what a filter selects by: ids, texts and times. Each error names the field and the value.
import { OutboxOptionsError } from '../errors.ts'
import { show } from './duration.ts'
import { isStorable } from './storable.ts'

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

/** Whether it looks like the id of an event. */
export function isEventId(text: string): boolean {
  return UUID.test(text)
}

/** One id, or several; undefined is none. */
export function requireIds(name: string, value: unknown): void {
  for (const one of value === undefined ? [] : [value].flat()) {
    if (typeof one !== 'string' || !isEventId(one)) {
      throw new OutboxOptionsError(`${name} must be the id of an event, a UUID, got ${show(one)}`)
    }
  }
}

export function requireTexts(fields: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined && typeof value !== 'string') {
      throw new OutboxOptionsError(`${name} must be a string, got ${show(value)}`)
    }
    if (value === undefined || isStorable(value)) continue
    throw new OutboxOptionsError(`${name} must be text without U+0000, got ${show(value)}`)
  }
}

export function requireDates(fields: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || (value instanceof Date && !Number.isNaN(value.getTime()))) continue
    throw new OutboxOptionsError(`${name} must be a valid Date, got ${show(value)}`)
  }
}
