import { expect, it, vi } from 'vitest'
import { Renewal } from '../../../src/delivery/renewal.ts'
import type { Loop } from '../../../src/runtime/loop.ts'
import { defer } from '../../support/timing/deferred.ts'

function setUp() {
  const delivery = { holdsAny: false, renewOnce: vi.fn(async () => {}) }
  const recorder = { setPatience: vi.fn() }
  let isRunning = false
  let run = async () => {}
  const newLoop = (
    _step: string,
    _intervalMs: unknown,
    task: (mayGoOn: () => boolean) => Promise<boolean>,
  ) => {
    run = async () => void (await task(() => true))
    const start = () => void (isRunning = true)
    const stop = async () => void (isRunning = false)
    return { start, stop } as unknown as Loop
  }
  const renewal = new Renewal({ delivery, recorder, newLoop, thresholdMs: 1_000 })
  return { renewal, delivery, recorder, tick: () => run(), isRunning: () => isRunning }
}

it('renews during a call, and ends with it if nothing is held', async () => {
  const { renewal, recorder, isRunning } = setUp()
  const [one, other] = [defer(), defer()]
  const calls = [renewal.during(() => one.promise), renewal.during(() => other.promise)]
  expect(isRunning()).toBe(true)
  one.resolve()
  await calls[0]
  expect(isRunning()).toBe(true)
  expect(recorder.setPatience).not.toHaveBeenCalledWith(false)
  other.resolve()
  await calls[1]
  expect(isRunning()).toBe(false)
  expect(recorder.setPatience).toHaveBeenLastCalledWith(false)
})

it('goes on after a call until what it sent is held no more', async () => {
  const { renewal, delivery, tick, isRunning } = setUp()
  delivery.holdsAny = true
  await expect(renewal.during(() => Promise.reject(new Error('late')))).rejects.toThrow('late')
  await tick()
  expect(isRunning()).toBe(true)
  delivery.holdsAny = false
  await tick()
  expect(delivery.renewOnce).toHaveBeenCalledTimes(2)
  expect(isRunning()).toBe(false)
})

it('ends no renewal that start() began', async () => {
  const { renewal, recorder, tick, isRunning } = setUp()
  renewal.start()
  await renewal.during(async () => {})
  await tick()
  expect(isRunning()).toBe(true)
  expect(recorder.setPatience).not.toHaveBeenCalledWith(false)
  await renewal.stop()
  expect(isRunning()).toBe(false)
  expect(recorder.setPatience).toHaveBeenLastCalledWith(false)
})

it('is patient from start() on, also after a call that ended while start() was under way', async () => {
  const { renewal, recorder } = setUp()
  await renewal.during(async () => {})
  renewal.start()
  expect(recorder.setPatience).toHaveBeenLastCalledWith(true)
})
