import { expect, it, vi } from 'vitest'
import { Lifecycle } from '../../src/lifecycle.ts'
import { guardLogger, silentLogger } from '../../src/runtime/logger.ts'
import { defer } from '../support/timing/deferred.ts'

const signal = { step: 'test', error: new Error('x') }

it('calls every listener even if one throws', () => {
  const error = vi.fn()
  const lifecycle = new Lifecycle({ ...silentLogger, error })
  const heard = vi.fn()
  lifecycle.events.on('error', () => {
    throw new Error('listener')
  })
  lifecycle.events.on('error', heard)
  lifecycle.tell('error', signal)
  expect(heard).toHaveBeenCalledWith(signal)
  expect(error).toHaveBeenCalledOnce()
})

it('reports an async listener that rejects instead of ending the process', async () => {
  const complained = defer<object>()
  const lifecycle = new Lifecycle({ ...silentLogger, error: complained.resolve })
  lifecycle.events.on('error', async () => {
    throw new Error('listener')
  })
  lifecycle.tell('error', signal)
  expect(await complained.promise).toMatchObject({ event: 'error' })
})

it('calls a once() listener once, and one that was taken off never', () => {
  const lifecycle = new Lifecycle(silentLogger)
  const once = vi.fn()
  const removed = vi.fn()
  lifecycle.events.once('error', once).on('error', removed).off('error', removed)
  lifecycle.tell('error', signal)
  lifecycle.tell('error', signal)
  expect(once).toHaveBeenCalledOnce()
  expect(removed).not.toHaveBeenCalled()
})

it('survives a logger that throws', () => {
  const broken = () => {
    throw new Error('logger')
  }
  const logger = guardLogger({ debug: broken, info: broken, warn: broken, error: broken })
  expect(() => logger.error({}, 'message')).not.toThrow()
})

it('refuses a name that no lifecycle event has, and what is not a function', () => {
  const { events } = new Lifecycle(silentLogger)
  expect(() => events.on('event:publish' as 'error', () => {})).toThrow(
    /no lifecycle event 'event:publish'; did you mean 'event:published'/,
  )
  expect(() => events.once('toString' as 'error', () => {})).toThrow(/no lifecycle event/)
  expect(() => events.on('error', undefined as never)).toThrow(/must be a function/)
})
