// What every view shares: the overview that is polled whatever is shown, the outcome of an action, and the dialog that asks
// first.
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { EventShown, Overview } from '../../api.ts'
import type { Act } from './acts.ts'
import type { Polled } from './poll.ts'
import type { Point } from './samples.ts'

export interface Session {
  readonly overview: Polled<Overview>
  readonly samples: readonly Point[]
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

/** What to offer while a person fills in a filter: what the page has heard of, without asking the server. */
export function knownValues(overview: Overview | null, events: readonly EventShown[] = []) {
  const valuesOf = (name: 'type' | 'topic' | 'aggregateType', known: readonly string[] = []) =>
    [...new Set([...known, ...events.map((event) => event[name])])].toSorted()
  return {
    type: valuesOf('type', overview?.types),
    topic: valuesOf('topic', knownTopics(overview)),
    aggregateType: valuesOf('aggregateType'),
  }
}
