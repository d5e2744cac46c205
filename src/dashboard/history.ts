// The hours before the page was opened: what instances wrote of themselves, minute by minute, also those that have stopped. One
// statement, shared by all pages, reads it at most every fifteen seconds, and only while a page asks.
import { performance } from 'node:perf_hooks'
import type { HistoryMinute, PastInstance } from '../store/outbox/control-store.ts'
import { LATENCY_BOUNDS } from '../upkeep/reporter.ts'
import { isUnseen } from '../upkeep/seen-instances.ts'
import type { HistoryAnswer, Sample } from './api.ts'
import { readQuery } from './input.ts'
import { percentiles } from './rates.ts'

const MINUTE_MS = 60_000
const FRESH_MS = 15_000
/** An instance writes a minute at most ten seconds after its end, so two minutes on, each that is well has written it. */
const LATEST_MS = 2 * MINUTE_MS

interface Filter {
  /** The id of an instance. */
  readonly instance?: string
  readonly topic?: string
}

type Histories = readonly PastInstance[]

export class HistoryReader {
  readonly #read: () => Promise<Histories>
  #reading: { readonly at: number; readonly histories: Promise<Histories> } | null = null

  constructor(read: () => Promise<Histories>) {
    this.#read = read
  }

  async answer(url: URL): Promise<HistoryAnswer> {
    const filter = readQuery(url, ['instance', 'topic'])
    return merge(await this.#fresh(), filter)
  }

  #fresh(): Promise<Histories> {
    const now = performance.now()
    if (this.#reading && now < this.#reading.at + FRESH_MS) return this.#reading.histories
    const histories = this.#read()
    this.#reading = { at: now, histories }
    histories.catch(() => {
      this.#reading = null
    })
    return histories
  }
}

export function merge(histories: Histories, filter: Filter): HistoryAnswer {
  const { instance } = filter
  const chosen = instance === undefined ? histories : histories.filter(({ id }) => id === instance)
  return {
    stepMs: MINUTE_MS,
    samples: samplesOf(chosen, filter.topic),
    topics: [...new Set(histories.flatMap(({ history }) => history.topics))].toSorted(),
    instances: histories.map(({ id, workerId, host, seenMsAgo }) => ({
      id,
      workerId,
      host,
      state: seenMsAgo === null ? 'stopped' : isUnseen(seenMsAgo) ? 'lost' : 'running',
    })),
  }
}

interface Sum {
  readonly sent: [immediate: number, fallback: number, failed: number]
  /** By place in LATENCY_BOUNDS. */
  readonly took: number[]
  table: HistoryMinute['table']
}

function samplesOf(histories: Histories, topic: string | undefined): Sample[] {
  const sums = new Map<number, Sum>()
  for (const one of histories) addTo(sums, one, topic)
  const until = lastWrittenByAll(histories)
  return [...sums]
    .filter(([minute]) => minute <= until)
    .toSorted(([one], [other]) => one - other)
    .map(([minute, sum]) => toSample(minute, sum))
}

function addTo(sums: Map<number, Sum>, past: PastInstance, topic: string | undefined): void {
  const { minutes, topics } = past.history
  const last = lastMinuteOf(past)
  for (const [n, minute] of minutes.entries()) {
    const at = last - (minutes.length - 1 - n)
    const sum = sums.get(at) ?? emptySum()
    sums.set(at, sum)
    if (minute === 0) continue
    for (const [place, immediate, fallback, failed] of minute.sent ?? []) {
      if (topic !== undefined && topics[place] !== topic) continue
      sum.sent[0] += immediate
      sum.sent[1] += fallback
      sum.sent[2] += failed
    }
    const { took = [] } = topic === undefined ? minute : {}
    for (let place = 0; place < took.length; place += 2) sum.took[took[place]!]! += took[place + 1]!
    // Several looks in one minute differ by seconds: the one that saw more.
    if (minute.table && !(sum.table && sum.table[0] >= minute.table[0])) sum.table = minute.table
  }
}

/** Minutes since 1970. Those of an instance begin at any second; each counts as the minute in which its middle is. */
function lastMinuteOf({ writtenAt, history }: PastInstance): number {
  const middle = writtenAt.getTime() - history.lastBeganMsAgo + MINUTE_MS / 2
  return Math.floor(middle / MINUTE_MS)
}

/** A minute that a running instance has still to write would look like a fall. One that does not come is not waited for. */
function lastWrittenByAll(histories: Histories): number {
  const running = histories.filter(({ seenMsAgo }) => seenMsAgo !== null && !isUnseen(seenMsAgo))
  const latest = Math.max(
    ...histories.map(({ writtenAt }) => Math.floor((writtenAt.getTime() - LATEST_MS) / MINUTE_MS)),
  )
  return Math.max(latest, Math.min(Infinity, ...running.map(lastMinuteOf)))
}

function toSample(minute: number, { sent, took, table }: Sum): Sample {
  const [immediate, fallback, failed] = sent.map((count) => (count * 1_000) / MINUTE_MS)
  const [pending = null, oldestMs = null, dead = null] = table ?? []
  return {
    at: (minute + 1) * MINUTE_MS,
    pending,
    dead,
    oldestMs,
    immediate: immediate!,
    fallback: fallback!,
    failed: failed!,
    latency: percentiles([took]),
  }
}

function emptySum(): Sum {
  const took = Array<number>(LATENCY_BOUNDS.length + 1).fill(0)
  return { sent: [0, 0, 0], took, table: undefined }
}
