// What this instance did in the last hours, minute by minute, in memory and in as few bytes as is bounded. Once a minute a beat
// writes it to the instance's row, so that the dashboard shows the hours before it was opened. Only listens; a crash loses
// the last minute.
import { performance } from 'node:perf_hooks'
import type { Lifecycle } from '../lifecycle.ts'
import {
  HISTORY_MINUTES,
  type HistoryMinute,
  type InstanceHistory,
} from '../store/outbox/control-store.ts'
import type { TableStats } from '../store/outbox/outbox-store.ts'
import { bucketOf } from './reporter.ts'

const MINUTE_MS = 60_000

/** As many topics are told apart. With all of them busy all the time, a history has 75 kB; Postgres compresses it. */
const MOST_TOPICS = 12
const OTHER_TOPICS = -1

type Sent = [immediate: number, fallback: number, failed: number]

interface Minute {
  readonly sent: Map<number, Sent>
  readonly took: Map<number, number>
  table: HistoryMinute['table']
}

export class History {
  #topics: string[] = []
  #past: (HistoryMinute | 0)[] = []
  #now: Minute = emptyMinute()
  #begunAt = performance.now()
  /** How many minutes have passed, and how many of them the row has or is about to have. */
  #passed = 0
  #offered = 0
  #written = 0

  constructor({ events }: Pick<Lifecycle, 'events'>) {
    events.on('event:published', ({ topic, path, latencyMs }) => {
      this.#sent(topic)[path === 'immediate' ? 0 : 1] += 1
      if (latencyMs === null) return
      const { took } = this.#now
      const bucket = bucketOf(latencyMs)
      took.set(bucket, (took.get(bucket) ?? 0) + 1)
    })
    const fail = ({ event }: { event: { topic: string } }) => void (this.#sent(event.topic)[2] += 1)
    events.on('event:failed', fail)
    events.on('event:dead', fail)
  }

  /** With each start(), as that makes a new instance. */
  begin(): void {
    this.#topics = []
    this.#past = []
    this.#now = emptyMinute()
    this.#begunAt = performance.now()
    this.#passed = 0
    this.#written = 0
  }

  /** Something in this process has read the table. */
  learn({ pending, dead, lagMs }: Pick<TableStats, 'pending' | 'dead' | 'lagMs'>): void {
    this.#passMinutes()
    this.#now.table = [pending.count, Math.round(lagMs ?? 0), dead.count]
  }

  /** What the next beat writes; null: nothing new. */
  unwritten(): InstanceHistory | null {
    this.#passMinutes()
    this.#offered = this.#passed
    return this.#offered === this.#written ? null : this.#until(this.#past, MINUTE_MS)
  }

  /** What unwritten() returned has been written. */
  written(): void {
    this.#written = this.#offered
  }

  /** With the minute that has not passed yet. */
  atEnd(): InstanceHistory {
    this.#passMinutes()
    return this.#until([...this.#past, toRecord(this.#now)].slice(-HISTORY_MINUTES), 0)
  }

  #until(minutes: readonly (HistoryMinute | 0)[], passedMs: number): InstanceHistory {
    const lastBeganMsAgo = Math.round(performance.now() - this.#begunAt + passedMs)
    return { topics: [...this.#topics], lastBeganMsAgo, minutes: [...minutes] }
  }

  #sent(topic: string): Sent {
    this.#passMinutes()
    const { sent } = this.#now
    const place = this.#placeOf(topic)
    const known = sent.get(place)
    if (known) return known
    const none: Sent = [0, 0, 0]
    sent.set(place, none)
    return none
  }

  #placeOf(topic: string): number {
    const place = this.#topics.indexOf(topic)
    if (place !== -1) return place
    return this.#topics.length < MOST_TOPICS ? this.#topics.push(topic) - 1 : OTHER_TOPICS
  }

  #passMinutes(): void {
    const now = performance.now()
    if (now < this.#begunAt + MINUTE_MS) return
    const passed = Math.floor((now - this.#begunAt) / MINUTE_MS)
    this.#begunAt += passed * MINUTE_MS
    this.#passed += passed
    // A process may have been frozen for hours.
    const idle = Array<0>(Math.min(passed - 1, HISTORY_MINUTES)).fill(0)
    this.#past = [...this.#past, toRecord(this.#now), ...idle].slice(-HISTORY_MINUTES)
    this.#now = emptyMinute()
  }
}

function emptyMinute(): Minute {
  return { sent: new Map(), took: new Map(), table: undefined }
}

function toRecord({ sent, took, table }: Minute): HistoryMinute | 0 {
  if (sent.size === 0 && !table) return 0
  return {
    ...(sent.size > 0 && { sent: [...sent].map(([topic, counts]) => [topic, ...counts] as const) }),
    ...(took.size > 0 && { took: [...took].flat() }),
    ...(table && { table }),
  }
}
