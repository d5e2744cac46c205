// How often the page asks. A person may choose, and the browser remembers it; a press on Refresh asks at once in any case.
import { useEffect, useState } from 'preact/hooks'

const KEY = 'aftercommit-refresh'
const NOW = 'aftercommit:refresh'
const CHANGED = 'aftercommit:refresh-rate'

/** In seconds; 0 is never. */
export const RATES = [5, 15, 60, 0] as const
export type Rate = (typeof RATES)[number]

export function useRefreshRate(): [rate: Rate, choose: (rate: Rate) => void] {
  const [rate, setRate] = useState(chosenRate)
  useEffect(() => {
    const update = () => setRate(chosenRate())
    addEventListener(CHANGED, update)
    return () => removeEventListener(CHANGED, update)
  }, [])
  return [
    rate,
    (chosen) => {
      localStorage.setItem(KEY, String(chosen))
      dispatchEvent(new Event(CHANGED))
    },
  ]
}

/** Everything that is polled asks now. */
export function refreshNow(): void {
  dispatchEvent(new Event(NOW))
}

export function onRefresh(refresh: () => void): () => void {
  addEventListener(NOW, refresh)
  return () => removeEventListener(NOW, refresh)
}

function chosenRate(): Rate {
  const kept = Number(localStorage.getItem(KEY) ?? RATES[0])
  return RATES.find((rate) => rate === kept) ?? RATES[0]
}
