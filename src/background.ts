// The loops of the background, as the outbox makes them: a step that fails is told of and tried again, and
// nobody waits for it.
import type { Lifecycle } from './lifecycle.ts'
import type { Logger } from './logger.ts'
import { Loop, type LoopOptions } from './loop.ts'
import { Trouble } from './trouble.ts'

const TEXTS = {
  level: 'error',
  begins: 'a background step failed; it will be tried again',
  goesOn: 'a background step still fails',
  over: 'a background step works again',
} as const

export type NewLoop = (
  step: string,
  intervalMs: LoopOptions['intervalMs'],
  run: LoopOptions['run'],
) => Loop

export function backgroundLoops(lifecycle: Lifecycle, logger: Logger): NewLoop {
  return (step, intervalMs, run) => {
    const trouble = new Trouble(logger, TEXTS)
    return new Loop({
      intervalMs,
      run,
      onError: (error) => {
        trouble.happened({ err: error, step })
        lifecycle.tell('error', { step, error })
      },
      onRecovered: () => trouble.isOver({ step }),
    })
  }
}
