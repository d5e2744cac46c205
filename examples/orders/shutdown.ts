// How the demo ends: whatever was opened is closed in reverse order, be it at the end of the story, after
// an error or on Ctrl-C. What had only half started by then is ended by the guardian of its folder (see
// test/support/servers/owned-folder.ts), once this process is gone.
import type { Screen } from './screen.ts'

export interface Shutdown {
  /** Aborts when the user ends the demo. */
  readonly signal: AbortSignal
  /** Closes this too, before all that was named earlier. */
  readonly closeLater: (close: () => Promise<unknown>) => void
  /** Resolves when the user ends the demo. From this call on, that interrupts nothing. */
  readonly untilAsked: () => Promise<void>
}

const INTERRUPTED = 130

/** Runs the story and ends the process with the exit code that it answers. */
export async function runToExit(
  screen: Screen,
  story: (shutdown: Shutdown) => Promise<number>,
): Promise<never> {
  const interruption = new AbortController()
  const { signal } = interruption
  const closers: (() => Promise<unknown>)[] = []

  let isTold = false

  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      // Asked twice: without waiting for anything.
      if (signal.aborted) process.exit(INTERRUPTED)
      interruption.abort()
    })
  }
  const asked = new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve())
  })
  const untilAsked = () => {
    isTold = true
    return asked
  }
  const interrupted = async (): Promise<number> => {
    await asked
    return isTold ? await new Promise<never>(() => {}) : INTERRUPTED
  }

  let code = 1
  try {
    const telling = story({ signal, closeLater: (close) => closers.push(close), untilAsked })
    code = await Promise.race([telling, interrupted()])
  } catch (error) {
    screen.freeze()
    console.error(error)
  }
  if (signal.aborted) {
    screen.freeze()
    screen.say(`\n  ${isTold ? '' : 'interrupted, '}stopping the servers`)
  }
  for (const close of closers.toReversed()) {
    await close().catch((error: unknown) => screen.say(`  while stopping: ${String(error)}`))
  }
  process.exit(code)
}
