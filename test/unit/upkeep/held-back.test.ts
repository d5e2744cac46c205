import { afterEach, expect, it, vi } from 'vitest'
import type { EventRef } from '../../../src/event/event.ts'
import { laneByEvent, laneOf, type OrderScopes } from '../../../src/event/lane.ts'
import { Lifecycle } from '../../../src/lifecycle.ts'
import { reportHeldBack } from '../../../src/upkeep/held-back.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'

afterEach(() => vi.restoreAllMocks())

const refOf = (id: string, aggregateId = 'one', topic = 'orders'): EventRef => {
  return { id, type: 'OrderCompleted', aggregateType: 'order', aggregateId, topic }
}

function open() {
  const logger = recordingLogger()
  const lifecycle = new Lifecycle(logger)
  const scopes: OrderScopes = { byTopic: new Map(), otherwise: 'topic' }
  reportHeldBack(lifecycle, scopes, logger)
  const fail = (event: EventRef, attempts = 1, lane = laneOf(event, scopes)) => {
    const outcome = { error: new Error('no'), attempts, retryInMs: 30_000 }
    lifecycle.tell('event:failed', { event, lane, path: 'immediate', ...outcome })
  }
  const save = (event: EventRef, lane = laneOf(event, scopes)) =>
    lifecycle.tell('event:saved', { event, lane })
  return { lifecycle, fail, save, lines: logger.lines }
}

it('says once that events wait behind one that failed', () => {
  const { fail, save, lines } = open()
  fail(refOf('a'))
  save(refOf('b'))
  save(refOf('c'))
  fail(refOf('a'), 2)
  save(refOf('d'))
  expect(lines).toEqual([
    {
      level: 'warn',
      fields: { event: refOf('b'), failed: refOf('a'), retryInMs: 30_000 },
      message: expect.stringContaining('waits behind an earlier one of its aggregate') as string,
    },
  ])
})

it('says nothing of scheduled events, which wait for no other and hold none', () => {
  const { fail, save, lines } = open()
  fail(refOf('a'), 1, laneByEvent({ id: 'a' }))
  save(refOf('b'))
  fail(refOf('c'))
  save(refOf('d'), laneByEvent({ id: 'd' }))
  expect(lines).toEqual([])
  save(refOf('e'))
  expect(lines).toHaveLength(1)
})

it('says nothing of other lanes, of outages, and of what has ended', () => {
  const { lifecycle, fail, save, lines } = open()
  fail(refOf('a'))
  save(refOf('b', 'two'))
  save(refOf('c', 'one', 'mails'))
  lifecycle.tell('event:dead', { event: refOf('a'), error: new Error('no'), attempts: 3 })
  save(refOf('d'))
  fail(refOf('e'), 0)
  save(refOf('f'))
  expect(lines).toEqual([])
})

it('listens to what is saved only while something has failed', () => {
  const { lifecycle, fail } = open()
  expect(lifecycle.hasListeners('event:saved')).toBe(false)
  fail(refOf('a'))
  fail(refOf('b', 'two'))
  expect(lifecycle.hasListeners('event:saved')).toBe(true)
  for (const event of [refOf('a'), refOf('b', 'two')]) {
    lifecycle.tell('event:dead', { event, error: new Error('no'), attempts: 3 })
  }
  expect(lifecycle.hasListeners('event:saved')).toBe(false)
})

it('makes room by forgetting what is long past its next attempt, and goes on with one listener', () => {
  let now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now)
  const { lifecycle, fail, save, lines } = open()
  for (let n = 0; n < 1_000; n += 1) fail(refOf(`old-${n}`, `old-${n}`))
  fail(refOf('too many', 'too many'))
  save(refOf('after too many', 'too many'))
  expect(lines).toEqual([])
  now = 100_000
  fail(refOf('a'))
  save(refOf('b'))
  expect(lines).toHaveLength(1)
  const error = new Error('no')
  lifecycle.tell('event:dead', { event: refOf('a'), error, attempts: 3 })
  expect(lifecycle.hasListeners('event:saved')).toBe(false)
})
