// Loads something now and as often as a person chose, while the tab is visible. A failure keeps the last response, so that the page
// shows old data with its age and not nothing.
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError } from './client.ts'
import { onRefresh, useRefreshRate } from './refresh.ts'

export interface Polled<T> {
  readonly data: T | null
  /** Why the last try failed; null if it did not. */
  readonly error: ApiError | null
  /** When `data` came, by this browser's clock. */
  readonly at: number
  readonly refresh: () => void
}

/** `key` identifies what is loaded: with another key the last response is forgotten. `leastMs`: not more often than this. */
export function usePoll<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  leastMs = 0,
): Polled<T> {
  const [rate] = useRefreshRate()
  const everyMs = rate === 0 ? null : Math.max(leastMs, rate * 1_000)
  const [state, setState] = useState<Omit<Polled<T>, 'refresh'> & { key: string }>(nothingOf(key))
  const latest = useRef(load)
  latest.current = load
  const refresh = useRef(() => {})

  useEffect(() => {
    setState((before) => (before.key === key ? before : nothingOf(key)))
    const ended = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    let isLoading = false
    let isWanted = false

    async function run(): Promise<void> {
      if (ended.signal.aborted) return
      if (isLoading) {
        isWanted = true
        return
      }
      clearTimeout(timer)
      isLoading = true
      try {
        const data = await latest.current(ended.signal)
        if (!ended.signal.aborted) setState({ key, data, error: null, at: Date.now() })
      } catch (error) {
        if (!ended.signal.aborted) setState((before) => ({ ...before, error: asApiError(error) }))
      }
      isLoading = false
      if (isWanted) {
        isWanted = false
        void run()
      } else if (everyMs !== null && !document.hidden && !ended.signal.aborted) {
        timer = setTimeout(run, everyMs)
      }
    }
    const onVisibility = () => {
      if (document.hidden) clearTimeout(timer)
      else if (everyMs !== null) void run()
    }
    const stopListening = onRefresh(() => void run())
    refresh.current = () => void run()
    document.addEventListener('visibilitychange', onVisibility)
    void run()
    return () => {
      ended.abort()
      clearTimeout(timer)
      stopListening()
      document.removeEventListener('visibilitychange', onVisibility)
    }
  }, [key, everyMs])

  const current = state.key === key ? state : nothingOf(key)
  return { ...current, refresh: () => refresh.current() }
}

export function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, 'page', String(error))
}

function nothingOf(key: string) {
  return { key, data: null, error: null, at: 0 }
}
