// Opt-in handling of the signals that ask a process to end.

/** Runs `stop` once on the first of the signals, then lets it do what it would have done. */
export function stopOnSignals(
  signals: readonly NodeJS.Signals[],
  stop: () => Promise<void>,
): () => void {
  const onSignal = async (signal: NodeJS.Signals): Promise<void> => {
    forget()
    await stop()
    // Whoever else listens decides how the process ends.
    if (process.listenerCount(signal) === 0) process.kill(process.pid, signal)
  }
  const forget = () => {
    for (const signal of signals) process.off(signal, onSignal)
  }
  for (const signal of signals) process.on(signal, onSignal)
  return forget
}
