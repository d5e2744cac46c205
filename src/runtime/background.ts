// The background loops of an outbox or an inbox. A step that fails is reported and tried again; nothing waits for it.
import type { Logger } from './logger.ts'
import { Loop, type LoopOptions } from './loop.ts'
import { BACKGROUND_STEP, Trouble } from './trouble.ts'

export type NewLoop = (
  step: string,
  intervalMs: LoopOptions['intervalMs'],
  run: LoopOptions['run'],
  watchMs?: number,
) => Loop

/** `tell` is called for each failure; the log gets it too. */
export function backgroundLoops(
  logger: Logger,
  tell: (failure: { step: string; error: Error }) => void = () => {},
): NewLoop {
  return (step, intervalMs, run, watchMs) => {
    const trouble = new Trouble(logger, BACKGROUND_STEP)
    return new Loop({
      intervalMs,
      run,
      ...(watchMs !== undefined && { watchMs }),
      onError: (error) => {
        trouble.happened({ err: error, step })
        tell({ step, error })
      },
      onRecovered: () => trouble.end({ step }),
    })
  }
}
