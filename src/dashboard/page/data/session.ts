// What every view shares: the overview that is polled whatever is shown, the outcome of an action, and the dialog that asks
// first.
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Overview, Sample } from '../../api.ts'
import type { Act } from './acts.ts'
import type { Polled } from './poll.ts'

export interface Session {
  readonly overview: Polled<Overview>
  readonly samples: readonly Sample[]
  /** Whether this person may act; false until the server has said so. */
  readonly mayAct: boolean
  /** Asks, acts, and shows the outcome; true if it was done. */
  readonly ask: (act: Act) => Promise<boolean>
}

export const SessionContext = createContext<Session | null>(null)

export function useSession(): Session {
  return useContext(SessionContext)!
}

/** Topics that the page has heard of, to choose from. */
export function knownTopics(overview: Overview | null): string[] {
  const declared = overview?.instances.flatMap(({ publishers }) => publishers) ?? []
  const topics = [
    ...declared.flatMap(({ topics: names }) => names ?? []),
    ...(overview?.topics ?? []).map(({ topic }) => topic),
    ...(overview?.pauses ?? []).flatMap(({ topic }) => (topic === null ? [] : [topic])),
  ]
  return [...new Set(topics)].toSorted()
}
