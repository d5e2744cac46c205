// Signals that ask a command to end.

/** Resolves with the first of these signals. A second one ends the process at once, as it would have without us. */
export function nextSignal(signals: readonly NodeJS.Signals[]): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    const onSignal = (signal: NodeJS.Signals) => {
      for (const one of signals) process.off(one, onSignal)
      resolve(signal)
    }
    for (const one of signals) process.on(one, onSignal)
  })
}
