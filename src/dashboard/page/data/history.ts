// Which part of the past the plots show. It lives in the address, so that a link shows the same. What instances wrote of
// themselves comes once a minute, and the page joins it with what the server saw since it began to look.
import type { HistoryAnswer } from '../../api.ts'
import { databaseNow } from './clock.ts'
import { get } from './client.ts'
import { type Polled, usePoll } from './poll.ts'
import { joinHistory, type Point, spanOf } from './samples.ts'

export const SPANS = { '15m': 15, '1h': 60, '3h': 180 } as const
export type Span = keyof typeof SPANS

export interface Choice {
  /** null: an hour, or as much of it as is known. */
  readonly span: Span | null
  /** The id of an instance. */
  readonly instance: string | null
  readonly topic: string | null
}

export function parseChoice(query: string): Choice {
  const params = new URLSearchParams(query)
  const span = params.get('span') ?? ''
  return {
    span: Object.hasOwn(SPANS, span) ? (span as Span) : null,
    instance: params.get('instance') || null,
    topic: params.get('topic') || null,
  }
}

export function formatChoice({ span, ...filter }: Choice): string {
  return new URLSearchParams({ ...(span && { span }), ...given(filter) }).toString()
}

export interface Past {
  readonly points: readonly Point[]
  /** For what is of the whole table, whatever the choice. */
  readonly ofTable: readonly Point[]
  /** How much of it to show. */
  readonly spanMs: () => number
  readonly answer: Polled<HistoryAnswer>
}

const EVERY_MS = 60_000

export function usePast(choice: Choice, seen: readonly Point[]): Past {
  const { span, instance, topic } = choice
  const path = `history?${new URLSearchParams(given({ instance, topic }))}`
  const answer = usePoll(path, (signal) => get<HistoryAnswer>(path, signal), EVERY_MS)
  const { samples = [], stepMs = EVERY_MS } = answer.data ?? {}
  const ofTable = joinHistory({ samples, stepMs }, seen)
  // What the server saw is of all instances and topics.
  const points = instance || topic ? joinHistory({ samples, stepMs }, []) : ofTable
  const spanMs = () => (span ? SPANS[span] * 60_000 : spanOf(ofTable, databaseNow()))
  return { points, ofTable, spanMs, answer }
}

function given(filter: Pick<Choice, 'instance' | 'topic'>): Record<string, string> {
  const entries = Object.entries(filter).filter((entry): entry is [string, string] => !!entry[1])
  return Object.fromEntries(entries)
}
