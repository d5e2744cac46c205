import { expect, it, vi } from 'vitest'
import { OwnEvents } from '../../../src/delivery/own-events.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'

const failure = { attempts: 1, error: 'no', isDead: false }

it('keeps refs and lanes, never payloads, up to its limit, and counts the others once', () => {
  const own = new OwnEvents(2)
  const events = [outboxEvent(), outboxEvent(), outboxEvent()]
  for (const event of [...events.slice(0, 2), events[0]!]) own.note(event)
  expect(own.takeUntracked()).toBe(0)
  own.note(events[2]!)
  const { id, type, aggregateType, aggregateId, topic, lane } = events[0]!
  const event = { id, type, aggregateType, aggregateId, topic }
  expect(own.all()[0]).toEqual({ event, lane, isGone: false })
  expect(own.all()).toHaveLength(2)
  expect(own.takeUntracked()).toBe(1)
  expect(own.takeUntracked()).toBe(0)
})

it('forgets what has an end, keeps what is tried again, and tells of both', () => {
  const own = new OwnEvents(10)
  const rung = vi.fn()
  own.changed.onRing(rung)
  const [delivered, dead, resting] = [outboxEvent(), outboxEvent(), outboxEvent()]
  for (const event of [delivered, dead, resting]) own.note(event)
  const all = own.all()
  own.delivered(delivered.id)
  own.failed(dead.id, { ...failure, isDead: true })
  own.failed(resting.id, failure)
  own.delivered('unknown')
  expect(all.map((one) => one.failure)).toEqual([null, { ...failure, isDead: true }, failure])
  expect(rung).toHaveBeenCalledTimes(3)
  const left = own.all()
  expect(left.map(({ event }) => event.id)).toEqual([resting.id])
  // It may have been retried by the time of the next flush().
  expect(left[0]!.failure).toBeUndefined()
})
