// Opt-in handling of signals that ask the process to end.

/** Runs `stop` once, on the first of these signals, then lets the signal take its usual effect. */
export function stopOnSignals(
  signals: readonly NodeJS.Signals[],
  stop: () => Promise<void>,
): () => void {
  const onSignal = async (signal: NodeJS.Signals): Promise<void> => {
    forget()
    await stop()
    // If there are other listeners, they decide how the process ends.
    if (process.listenerCount(signal) === 0) process.kill(process.pid, signal)
  }
  const forget = () => {
    for (const signal of signals) process.off(signal, onSignal)
  }
  for (const signal of signals) process.on(signal, onSignal)
  return forget
}
