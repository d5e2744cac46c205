import { afterEach, describe, expect, it, vi } from 'vitest'
import { validate, version } from 'uuid'
import { newEventId } from '../../../src/event/event-id.ts'

/** More than random bytes are drawn for at once. */
const MANY = 1_000

describe('the id of an event', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  it('is a UUID of version 7 that says when it was made', () => {
    const now = new Date('2040-05-06T07:08:09.123Z')
    vi.useFakeTimers({ now })
    const id = newEventId()
    expect(validate(id)).toBe(true)
    expect(version(id)).toBe(7)
    expect(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toBe(now.getTime())
  })

  it('is greater than the one before, within a millisecond and when the clock is set back', () => {
    vi.useFakeTimers({ now: new Date('2050-01-01T00:00:01Z') })
    const ids = Array.from({ length: MANY }, newEventId)
    vi.setSystemTime(new Date('2050-01-01T00:00:00Z'))
    ids.push(...Array.from({ length: MANY }, newEventId))
    expect(ids).toEqual([...new Set(ids)].toSorted())
  })

  it('ends in random bytes of its own', () => {
    const tails = Array.from({ length: MANY }, () => newEventId().slice(-12))
    expect(new Set(tails).size).toBe(MANY)
  })
})
