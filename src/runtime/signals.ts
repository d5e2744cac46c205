// Opt-in handling of signals that ask the process to end.

/** What is being stopped at the moment, by all that listen in this process. */
const stopping = new Set<object>()

/** Runs `stop` once, on the first of these signals, then lets the signal take its usual effect. */
export function stopOnSignals(
  signals: readonly NodeJS.Signals[],
  stop: () => Promise<void>,
): () => void {
  const onSignal = async (signal: NodeJS.Signals): Promise<void> => {
    forget()
    stopping.add(onSignal)
    await stop()
    stopping.delete(onSignal)
    // If there are other listeners, they decide how the process ends; if others are stopping, the last of them does.
    if (process.listenerCount(signal) === 0 && stopping.size === 0)
      process.kill(process.pid, signal)
  }
  const forget = () => {
    for (const signal of signals) process.off(signal, onSignal)
  }
  for (const signal of signals) process.on(signal, onSignal)
  return forget
}
