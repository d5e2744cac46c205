import { AsyncLocalStorage } from 'node:async_hooks'
import { performance } from 'node:perf_hooks'
import { expect, it, vi } from 'vitest'
import { Loop } from '../../../src/runtime/loop.ts'
import { defer } from '../../support/timing/deferred.ts'

const HOUR = 3_600_000
const noError = (error: Error) => expect.unreachable(error.message)

it('runs on while there is more to do, then rests', async () => {
  const answers = [true, true, false]
  const rested = defer()
  const run = vi.fn(async () => {
    const more = answers.shift() ?? false
    if (!more) rested.resolve()
    return more
  })
  const loop = new Loop({ intervalMs: HOUR, run, onError: noError })
  loop.start()
  await rested.promise
  await loop.stop()
  expect(run).toHaveBeenCalledTimes(3)
})

it('runs once more when woken during a run', async () => {
  const second = defer()
  let runs = 0
  const loop: Loop = new Loop({
    intervalMs: HOUR,
    run: async () => {
      runs += 1
      if (runs === 1) loop.wake()
      else second.resolve()
      return false
    },
    onError: noError,
  })
  loop.start()
  await second.promise
  await loop.stop()
  expect(runs).toBe(2)
})

it('goes on after a run that failed', async () => {
  const recovered = defer()
  const failures: string[] = []
  const loop = new Loop({
    intervalMs: 1,
    run: async () => {
      if (failures.length === 0) throw new Error('away')
      recovered.resolve()
      return false
    },
    onError: (error) => failures.push(error.message),
  })
  loop.start()
  await recovered.promise
  await loop.stop()
  expect(failures).toEqual(['away'])
})

it('runs once more, and at once, when woken during a run that fails', async () => {
  let runs = 0
  const onError = vi.fn()
  const loop: Loop = new Loop({
    intervalMs: HOUR,
    run: async () => {
      runs += 1
      if (runs > 1) return false
      loop.wake()
      throw new Error('away')
    },
    onError,
  })
  vi.useFakeTimers()
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now())
  try {
    loop.start()
    await vi.advanceTimersByTimeAsync(0)
    expect(runs).toBe(2)
    await loop.stop()
    expect(onError).toHaveBeenCalledOnce()
  } finally {
    vi.restoreAllMocks()
    vi.useRealTimers()
  }
})

it('runs once however often it is started', async () => {
  const run = vi.fn(async () => false)
  const loop = new Loop({ intervalMs: HOUR, run, onError: noError })
  vi.useFakeTimers()
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now())
  try {
    loop.start()
    await vi.advanceTimersByTimeAsync(0)
    loop.start()
    await vi.advanceTimersByTimeAsync(0)
    expect(run).toHaveBeenCalledOnce()
    await loop.stop()
  } finally {
    vi.restoreAllMocks()
    vi.useRealTimers()
  }
})

it('waits in stop() for the run under way, and begins none after it', async () => {
  const begun = defer()
  const release = defer()
  let runs = 0
  const loop = new Loop({
    intervalMs: 1,
    run: async () => {
      runs += 1
      begun.resolve()
      await release.promise
      return true
    },
    onError: noError,
  })
  loop.start()
  await begun.promise
  const stopped = loop.stop()
  loop.wake()
  release.resolve()
  await stopped
  expect(runs).toBe(1)
})

it('runs once more when woken while a run waits for something', async () => {
  const [begun, release, second] = [defer(), defer(), defer()]
  let runs = 0
  const loop = new Loop({
    intervalMs: HOUR,
    run: async () => {
      runs += 1
      if (runs === 2) second.resolve()
      begun.resolve()
      await release.promise
      return false
    },
    onError: noError,
  })
  loop.start()
  await begun.promise
  loop.wake()
  loop.wake()
  expect(runs).toBe(1)
  release.resolve()
  await second.promise
  await loop.stop()
  expect(runs).toBe(2)
})

it('has nothing under way any more when stop() resolves', async () => {
  const [begun, release] = [defer(), defer()]
  let ended = false
  const loop = new Loop({
    intervalMs: HOUR,
    run: async () => {
      begun.resolve()
      await release.promise
      // Later than anything that does not wait for this run.
      await new Promise((resolve) => setImmediate(resolve))
      ended = true
      return false
    },
    onError: noError,
  })
  loop.start()
  await begun.promise
  const stopped = loop.stop()
  release.resolve()
  await stopped
  expect(ended).toBe(true)
})

it('leaves no timer behind when it is stopped at rest', async () => {
  vi.useFakeTimers()
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now())
  try {
    const loop = new Loop({ intervalMs: HOUR, run: async () => false, onError: noError })
    loop.start()
    await vi.advanceTimersByTimeAsync(0)
    expect(vi.getTimerCount()).toBe(1)
    await loop.stop()
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.restoreAllMocks()
    vi.useRealTimers()
  }
})

it('rests longer and longer while its runs fail, and tells when they work again', async () => {
  vi.useFakeTimers()
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now())
  try {
    const runsAt: number[] = []
    const [onError, onRecovered] = [vi.fn(), vi.fn()]
    const run = async () => {
      runsAt.push(performance.now())
      if (runsAt.length <= 8) throw new Error('away')
      return false
    }
    const loop = new Loop({ intervalMs: 10, run, onError, onRecovered })
    loop.start()
    await vi.advanceTimersByTimeAsync(20_000)
    const pauses = runsAt.slice(1, 10).map((at, n) => at - runsAt[n]!)
    expect(pauses).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 10])
    expect(onError).toHaveBeenCalledTimes(8)
    expect(onRecovered).toHaveBeenCalledOnce()
    await loop.stop()
  } finally {
    vi.restoreAllMocks()
    vi.useRealTimers()
  }
})

it('looks again after growing pauses while it watches, then once per interval', async () => {
  vi.useFakeTimers()
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now())
  try {
    const runsAt: number[] = []
    const run = async () => {
      runsAt.push(performance.now())
      return false
    }
    const loop = new Loop({ intervalMs: 300, run, onError: noError, watchMs: 1_000 })
    loop.start({ atOnce: false })
    await vi.advanceTimersByTimeAsync(299)
    expect(runsAt).toEqual([])
    loop.watch()
    await vi.advanceTimersByTimeAsync(0)
    expect(runsAt).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(1_800)
    const pauses = runsAt.slice(1).map((at, n) => at - runsAt[n]!)
    expect(pauses).toEqual([50, 100, 200, 250, 250, 250, 300, 300])
    await loop.stop()
  } finally {
    vi.restoreAllMocks()
    vi.useRealTimers()
  }
})

it('keeps its pauses short, and not shorter than that, while it is asked to watch again and again', async () => {
  vi.useFakeTimers()
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now())
  try {
    const runsAt: number[] = []
    const run = async () => {
      runsAt.push(performance.now())
      return false
    }
    const loop = new Loop({ intervalMs: 7_000, run, onError: noError })
    loop.start({ atOnce: false })
    for (let ms = 0; ms < 2_000; ms += 10) {
      loop.watch()
      await vi.advanceTimersByTimeAsync(10)
    }
    const pauses = runsAt.slice(1).map((at, n) => Math.round((at - runsAt[n]!) / 10) * 10)
    expect(pauses).toEqual([50, 100, 200, 250, 250, 250, 250, 250, 250])
    await vi.advanceTimersByTimeAsync(60_000)
    expect(runsAt.at(-1)! - runsAt.at(-2)!).toBe(7_000)
    await loop.stop()
  } finally {
    vi.restoreAllMocks()
    vi.useRealTimers()
  }
})

it('looks at once for a first call, and no sooner than after 250 ms when the last look was in vain', async () => {
  vi.useFakeTimers()
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now())
  try {
    const runsAt: number[] = []
    let finds = false
    const run = async () => {
      runsAt.push(performance.now())
      const found = finds
      finds = false
      return found
    }
    const loop = new Loop({ intervalMs: 7_000, run, onError: noError })
    loop.start({ atOnce: false })
    const begun = performance.now()
    for (let ms = 0; ms < 990; ms += 10) {
      loop.look()
      await vi.advanceTimersByTimeAsync(10)
    }
    expect(runsAt.map((at) => at - begun)).toEqual([0, 250, 500, 750])
    // A look that finds something is followed by the next at once.
    await vi.advanceTimersByTimeAsync(250)
    runsAt.length = 0
    for (let n = 0; n < 3; n += 1) {
      finds = true
      loop.look()
      await vi.advanceTimersByTimeAsync(10)
    }
    expect(runsAt).toHaveLength(6)
    await loop.stop()
  } finally {
    vi.restoreAllMocks()
    vi.useRealTimers()
  }
})

it('looks no more often than its interval, where that is short, however often it is asked to', async () => {
  vi.useFakeTimers()
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now())
  try {
    let runs = 0
    const run = async () => {
      runs += 1
      return false
    }
    const loop = new Loop({ intervalMs: 100, run, onError: noError })
    loop.start({ atOnce: false })
    for (let ms = 0; ms < 2_000; ms += 5) {
      loop.watch()
      await vi.advanceTimersByTimeAsync(5)
    }
    expect(runs).toBeLessThanOrEqual(22)
    await loop.stop()
  } finally {
    vi.restoreAllMocks()
    vi.useRealTimers()
  }
})

it('does not put off the next try after a failure, however often it is asked to watch', async () => {
  vi.useFakeTimers()
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now())
  try {
    const runsAt: number[] = []
    const run = async () => {
      runsAt.push(performance.now())
      if (runsAt.length <= 4) throw new Error('away')
      return false
    }
    const loop = new Loop({ intervalMs: 7_000, run, onError: () => {} })
    loop.start()
    for (let ms = 0; ms < 2_000; ms += 10) {
      loop.watch()
      await vi.advanceTimersByTimeAsync(10)
    }
    expect(runsAt.length).toBeGreaterThan(4)
    await loop.stop()
  } finally {
    vi.restoreAllMocks()
    vi.useRealTimers()
  }
})

it('runs in a context of its own, not in that of the request that woke it', async () => {
  const request = new AsyncLocalStorage<string>()
  const seen: (string | undefined)[] = []
  const twice = defer()
  const loop = new Loop({
    intervalMs: 1,
    run: async () => {
      seen.push(request.getStore())
      if (seen.length === 2) twice.resolve()
      return false
    },
    onError: noError,
  })
  loop.start({ atOnce: false })
  request.run('of a user', () => loop.wake())
  await twice.promise
  await loop.stop()
  expect(seen.slice(0, 2)).toEqual([undefined, undefined])
})

it('begins anew with short pauses when a look has found something', async () => {
  vi.useFakeTimers()
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now())
  try {
    const runsAt: number[] = []
    const run = async () => {
      runsAt.push(performance.now())
      return runsAt.length === 4
    }
    const loop = new Loop({ intervalMs: 7_000, run, onError: noError })
    loop.start({ atOnce: false })
    loop.watch()
    await vi.advanceTimersByTimeAsync(500)
    const pauses = runsAt.slice(1).map((at, n) => at - runsAt[n]!)
    expect(pauses).toEqual([50, 100, 200, 0, 50, 100])
    await loop.stop()
  } finally {
    vi.restoreAllMocks()
    vi.useRealTimers()
  }
})

it('does not run before its time when that is further away than a timer can wait', async () => {
  vi.useFakeTimers()
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now())
  try {
    const due = performance.now() + 40 * 86_400_000
    const run = vi.fn(async () => false)
    const intervalMs = () => Math.max(0, due - performance.now())
    const loop = new Loop({ intervalMs, run, onError: noError })
    loop.start({ atOnce: false })
    await vi.advanceTimersByTimeAsync(39 * 86_400_000)
    expect(run).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(86_400_000)
    expect(run).toHaveBeenCalled()
    await loop.stop()
  } finally {
    vi.restoreAllMocks()
    vi.useRealTimers()
  }
})

it('asks for its pause each time when that is a function', async () => {
  vi.useFakeTimers()
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now())
  try {
    const pauses = [100, 200]
    const run = vi.fn(async () => false)
    const loop = new Loop({ intervalMs: () => pauses.shift() ?? HOUR, run, onError: noError })
    loop.start({ atOnce: false })
    await vi.advanceTimersByTimeAsync(300)
    expect(run).toHaveBeenCalledTimes(2)
    await loop.stop()
  } finally {
    vi.restoreAllMocks()
    vi.useRealTimers()
  }
})
