// Waiting for a condition, never for a time: the only place where tests set a timer.
import type { LifecycleEvents, OutboxEvents } from '../../../src/index.ts'

export type WaitOptions = {
  /** What was awaited, for the failure; a function may add the state reached by then. */
  message: string | (() => string)
  /** @default 30 seconds */
  timeoutMs?: number
}

type Truthy<T> = Exclude<T, false | null | undefined | 0 | ''>

const pollMs = 15
const defaultTimeoutMs = 30_000

/** Polls until the answer is truthy and returns it. An error of the predicate ends the wait. */
export async function waitUntil<T>(
  predicate: () => T | Promise<T>,
  { message, timeoutMs = defaultTimeoutMs }: WaitOptions,
): Promise<Truthy<T>> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const answer: T = await predicate()
    if (isTruthy(answer)) return answer
    if (performance.now() > deadline) {
      const text = typeof message === 'string' ? message : message()
      throw new Error(`waited ${timeoutMs} ms in vain: ${text}`)
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}

function isTruthy<T>(value: T): value is Truthy<T> {
  return Boolean(value)
}

/** How long an action went on beyond a limit, by a timer that begins with it: a machine that stands still holds up both. */
export async function msBeyond(limitMs: number, action: () => Promise<unknown>): Promise<number> {
  const over = new Promise<number>((resolve) => {
    setTimeout(() => resolve(performance.now()), limitMs)
  })
  await action()
  const endedAt = performance.now()
  return endedAt - (await over)
}

/** The signal of the next lifecycle event of that name, or of the first that the predicate accepts. */
export function nextEvent<Name extends keyof LifecycleEvents>(
  events: OutboxEvents,
  name: Name,
  predicate: (signal: Parameters<LifecycleEvents[Name]>[0]) => boolean = () => true,
  timeoutMs = defaultTimeoutMs,
): Promise<Parameters<LifecycleEvents[Name]>[0]> {
  return new Promise((resolve, reject) => {
    const listener = (signal: Parameters<LifecycleEvents[Name]>[0]) => {
      if (!predicate(signal)) return
      clearTimeout(timer)
      events.off(name, listener)
      resolve(signal)
    }
    const timer = setTimeout(() => {
      events.off(name, listener)
      reject(new Error(`waited ${timeoutMs} ms in vain for the event ${name}`))
    }, timeoutMs)
    events.on(name, listener)
  })
}
