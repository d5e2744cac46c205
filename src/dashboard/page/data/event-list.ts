// The pages of events that are shown so far. A refresh changes rows where they are; rows that came or went wait for a click, so that
// nothing moves under the pointer.
import { useEffect, useRef, useState } from 'preact/hooks'
import type { EventShown, EventsAnswer } from '../../api.ts'
import { type ApiError, get } from './client.ts'
import { databaseNow, learnTime } from './clock.ts'
import { type EventFilter, formatFilter, toQuery } from './event-filter.ts'
import { asApiError, usePoll } from './poll.ts'

const PAGE = 50

interface EventList {
  readonly events: readonly EventShown[]
  readonly isLoading: boolean
  readonly error: ApiError | null
  /** There may be more. */
  readonly hasMore: boolean
  /** How far back the server has looked so far, if it stopped before the end. */
  readonly lookedUntil: string | null
  /** The server's first page is another one by now. */
  readonly hasChanged: boolean
  readonly more: () => Promise<void>
  readonly reload: () => void
}

type Shown = Pick<EventsAnswer, 'events' | 'next' | 'lookedUntil'> & { readonly key: string }

export function useEventList(filter: EventFilter): EventList {
  const [round, setRound] = useState(0)
  const key = `${formatFilter(filter)}#${round}`
  // The span `1h` begins when the list is made, so that all pages are of one list.
  const begun = useRef({ key: '', now: 0 })
  if (begun.current.key !== key) begun.current = { key, now: databaseNow() }
  const [shown, setShown] = useState<Shown | null>(null)
  const [paging, setPaging] = useState<{ isLoading: boolean; error: ApiError | null }>(IDLE)

  const load = (after: string | null, signal?: AbortSignal) => {
    const query = { ...toQuery(filter, begun.current.now), limit: String(PAGE) }
    const params = new URLSearchParams(after === null ? query : { ...query, after })
    return get<EventsAnswer>(`events?${params}`, signal)
  }
  const first = usePoll(key, (signal) => load(null, signal))

  useEffect(() => {
    if (!first.data) return
    learnTime(first.data.now)
    const fresh = { ...first.data, key }
    setShown((before) =>
      before?.key === key && before.events.length > 0 ? inPlace(before, fresh) : fresh,
    )
  }, [first.data, key])

  async function more(): Promise<void> {
    if (!shown?.next) return
    setPaging({ isLoading: true, error: null })
    try {
      const answer = await load(shown.next)
      setShown({ ...answer, key, events: [...shown.events, ...answer.events] })
      setPaging(IDLE)
    } catch (error) {
      setPaging({ isLoading: false, error: asApiError(error) })
    }
  }

  const isCurrent = shown?.key === key
  return {
    events: shown?.events ?? [],
    isLoading: !isCurrent || paging.isLoading,
    error: first.error ?? paging.error,
    hasMore: isCurrent && shown.next !== null,
    lookedUntil: isCurrent ? shown.lookedUntil : null,
    hasChanged: isCurrent && first.data !== null && differs(shown.events, first.data.events),
    more,
    reload: () => setRound((before) => before + 1),
  }
}

const IDLE = { isLoading: false, error: null }

function inPlace(before: Shown, fresh: Shown): Shown {
  const byId = new Map(fresh.events.map((event) => [event.id, event]))
  return { ...before, events: before.events.map((event) => byId.get(event.id) ?? event) }
}

function differs(shown: readonly EventShown[], first: readonly EventShown[]): boolean {
  const page = shown.slice(0, Math.max(first.length, Math.min(PAGE, shown.length)))
  return page.length !== first.length || page.some(({ id }, index) => id !== first[index]!.id)
}
