// The loops of the background, as the outbox makes them: a step that fails is told of and tried again, and
// nobody waits for it.
import type { Lifecycle } from './lifecycle.ts'
import type { Logger } from './logger.ts'
import { Loop, type LoopOptions } from './loop.ts'
import { BACKGROUND_STEP, Trouble } from './trouble.ts'

export type NewLoop = (
  step: string,
  intervalMs: LoopOptions['intervalMs'],
  run: LoopOptions['run'],
) => Loop

export function backgroundLoops(lifecycle: Lifecycle, logger: Logger): NewLoop {
  return (step, intervalMs, run) => {
    const trouble = new Trouble(logger, BACKGROUND_STEP)
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
