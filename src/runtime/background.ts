// The loops of the background, of an outbox or an inbox: a step that fails is told of and tried again, and nobody
// waits for it.
import type { Logger } from './logger.ts'
import { Loop, type LoopOptions } from './loop.ts'
import { BACKGROUND_STEP, Trouble } from './trouble.ts'

export type NewLoop = (
  step: string,
  intervalMs: LoopOptions['intervalMs'],
  run: LoopOptions['run'],
) => Loop

/** `tell`: whom to tell of each failure, besides the log. */
export function backgroundLoops(
  logger: Logger,
  tell: (failure: { step: string; error: Error }) => void = () => {},
): NewLoop {
  return (step, intervalMs, run) => {
    const trouble = new Trouble(logger, BACKGROUND_STEP)
    return new Loop({
      intervalMs,
      run,
      onError: (error) => {
        trouble.happened({ err: error, step })
        tell({ step, error })
      },
      onRecovered: () => trouble.isOver({ step }),
    })
  }
}
