// Health: what the table holds, how this process has been doing, and whether either exceeds a limit.
// Read only. Nothing on the path depends on it.
import { performance } from 'node:perf_hooks'
import type { Unreachable } from '../delivery/circuits.ts'
import { type Duration, formatDuration, show } from '../checks/duration.ts'
import { describeError, OutboxOptionsError, toError } from '../errors.ts'
import type { Lifecycle } from '../lifecycle.ts'
import { NO_WRITES } from '../store/database.ts'
import type { Pause } from '../store/outbox/control-store.ts'
import type { Store, TableStats } from '../store/outbox/outbox-store.ts'
import type { Unrouted } from './unrouted.ts'
import { rejectUnknown, requireCount, requireDuration } from '../checks/checks.ts'
import { formatAge } from './age.ts'
import { type CdcProblem, MOST_SLOT_BYTES } from './cdc.ts'
import type { History } from './history.ts'

/** What the table holds, and what this process did in the last minute. */
export interface OutboxStats extends TableStats {
  /** What is paused. Events of these topics wait, and count as pending. */
  readonly paused: readonly Pause[]
  readonly lastMinute: {
    readonly published: number
    /** Failed attempts, for any recorded reason, including outages. */
    readonly failed: number
    /** Acks for events that had already been recorded as published: these went out twice. */
    readonly duplicates: number
    /** Rounds of the fallback, and below, how many events they claimed. */
    readonly polls: number
    readonly claimed: number
    /** The longest of these rounds, including rounds that failed. */
    readonly longestPollMs: number
  }
}

export interface HealthLimits {
  /** The most unsent events in the table. @default 1000 */
  maxPending?: number
  /** The highest share of failed attempts in the last minute. Applies from 20 attempts on. @default 0.05 */
  maxFailureRate?: number
  /** The longest that the last round of the fallback may have taken. @default '5s' */
  maxPoll?: Duration
  /** The most dead letters. @default no limit, but 0 with `onDeadLetter: 'hold'`, where each stops a lane */
  maxDead?: number
  /** With `relay: 'cdc'`: how many bytes of the log the connector may be behind. @default 1 GiB */
  maxSlotBytes?: number
}

export interface HealthFlag {
  readonly flag:
    | 'database'
    | 'circuit'
    | 'pending'
    | 'failures'
    | 'poll'
    | 'dead'
    | 'unrouted'
    | 'cdc'
  readonly message: string
}

export interface OutboxHealth {
  readonly ok: boolean
  /** What is wrong; empty when all is well. */
  readonly flags: readonly HealthFlag[]
  /** null when the database could not be queried. */
  readonly stats: OutboxStats | null
}

const READ_ONLY: HealthFlag = {
  flag: 'database',
  message: `the server takes no writes, so no event is saved and no outcome recorded; ${NO_WRITES}`,
}

const WINDOW_MS = 60_000
const FEWEST_TRIES = 20

type Tally = { -readonly [Name in keyof OutboxStats['lastMinute']]: number }

export interface HealthParts {
  readonly store: Pick<Store<never>, 'stats' | 'countPending' | 'takesWrites'> & {
    readonly control: Pick<Store<never>['control'], 'pauses'>
  }
  readonly delivery: { unreachable(): readonly Unreachable[] }
  readonly unrouted: Pick<Unrouted, 'count'>
  readonly lifecycle: Lifecycle
  readonly history: Pick<History, 'learn'>
  readonly deadLettersHold: boolean
  /** With relay: 'cdc': what is wrong with the connector's side. Else null. */
  readonly findCdcProblems: ((mostBytes: number) => Promise<readonly CdcProblem[]>) | null
}

export class Health {
  readonly #parts: HealthParts
  #seconds: { readonly at: number; readonly tally: Tally }[] = []
  /** How long the last round of each publisher's fallback took, and when it ended. */
  readonly #lastPoll = new Map<string, { readonly ms: number; readonly at: number }>()

  constructor(parts: HealthParts) {
    const { events } = parts.lifecycle
    this.#parts = parts
    const count = (name: keyof Tally) => () => {
      this.#thisSecond()[name] += 1
    }
    events.on('event:published', count('published'))
    events.on('event:failed', count('failed'))
    events.on('event:dead', count('failed'))
    events.on('event:duplicate', count('duplicates'))
    events.on('poll:done', ({ publisher, claimed, durationMs }) => {
      this.#lastPoll.set(publisher, { ms: durationMs, at: performance.now() })
      const tally = this.#thisSecond()
      tally.polls += 1
      tally.claimed += claimed
      tally.longestPollMs = Math.max(tally.longestPollMs, durationMs)
    })
  }

  async stats(): Promise<OutboxStats> {
    const { store, history } = this.#parts
    const [table, paused] = await Promise.all([store.stats(), store.control.pauses()])
    history.learn(table)
    const lastMinute = emptyTally()
    this.#forgetOld()
    for (const { tally } of this.#seconds) {
      for (const name of ['published', 'failed', 'duplicates', 'polls', 'claimed'] as const) {
        lastMinute[name] += tally[name]
      }
      lastMinute.longestPollMs = Math.max(lastMinute.longestPollMs, tally.longestPollMs)
    }
    return { ...table, paused, lastMinute }
  }

  async health(limits: HealthLimits = {}): Promise<OutboxHealth> {
    const resolved = resolveLimits(limits, this.#parts.deadLettersHold)
    const flags = this.#parts.delivery.unreachable().map(circuitFlag)
    let stats: OutboxStats | null = null
    try {
      stats = await this.stats()
      flags.push(...redFlags(stats, resolved, await this.#countPending(stats, resolved)))
      flags.push(...this.#slowPolls(resolved))
      flags.push(...unroutedFlags(await this.#parts.unrouted.count()))
      if (!(await this.#parts.store.takesWrites())) flags.push(READ_ONLY)
      const cdc = (await this.#parts.findCdcProblems?.(resolved.maxSlotBytes)) ?? []
      flags.push(...cdc.map(({ message }): HealthFlag => ({ flag: 'cdc', message })))
    } catch (thrown) {
      flags.push({ flag: 'database', message: toError(thrown).message })
    }
    return { ok: flags.length === 0, flags, stats }
  }

  // Only the last round counts: one slow probe of a broker that is back must not look like trouble for a minute.
  #slowPolls({ maxPollMs }: ResolvedLimits): HealthFlag[] {
    const since = performance.now() - WINDOW_MS
    const slow = [...this.#lastPoll].filter(([, { ms, at }]) => ms > maxPollMs && at > since)
    return slow.map(([publisher, { ms }]) => ({
      flag: 'poll',
      message: `the last round of the fallback for the publisher '${publisher}' took ${Math.round(ms)}ms, longer than ${formatDuration(maxPollMs)}`,
    }))
  }

  // The limit may be further than stats() counts.
  async #countPending({ pending }: OutboxStats, { maxPending }: ResolvedLimits): Promise<number> {
    return pending.exact ? pending.count : await this.#parts.store.countPending(maxPending + 1)
  }

  #thisSecond(): Tally {
    const at = Math.floor(performance.now() / 1_000) * 1_000
    const last = this.#seconds.at(-1)
    if (last?.at === at) return last.tally
    this.#forgetOld()
    const tally = emptyTally()
    this.#seconds.push({ at, tally })
    return tally
  }

  #forgetOld(): void {
    const since = performance.now() - WINDOW_MS
    this.#seconds = this.#seconds.filter(({ at }) => at > since)
  }
}

function emptyTally(): Tally {
  return { published: 0, failed: 0, duplicates: 0, polls: 0, claimed: 0, longestPollMs: 0 }
}

function redFlags(
  { lastMinute, dead, paused }: OutboxStats,
  limits: ResolvedLimits,
  pending: number,
): HealthFlag[] {
  const { published, failed } = lastMinute
  const flags: HealthFlag[] = []
  if (pending > limits.maxPending) {
    flags.push({
      flag: 'pending',
      message: `more than ${limits.maxPending} events are waiting to be sent${pausedNote(paused)}`,
    })
  }
  if (dead.count > limits.maxDead) {
    const atLeast = dead.exact ? '' : 'at least '
    const message = `${atLeast}${countOf(dead.count, 'dead letter')} must be retried or discarded`
    flags.push({ flag: 'dead', message })
  }
  const tries = published + failed
  if (tries >= FEWEST_TRIES && failed / tries > limits.maxFailureRate) {
    const message = `${failed} of ${tries} attempts failed in the last minute`
    flags.push({ flag: 'failures', message })
  }
  return flags
}

function pausedNote(paused: readonly Pause[]): string {
  if (paused.length === 0) return ''
  const names = paused.map(({ topic }) => (topic === null ? 'everything' : `'${topic}'`))
  return `; paused: ${names.join(', ')}`
}

function circuitFlag({ publisher, topic, since, error }: Unreachable): HealthFlag {
  const destination = topic === null ? 'the broker' : `the topic '${topic}'`
  const age = formatAge(performance.now() - since)
  return {
    flag: 'circuit',
    message: `sends to ${destination} of the publisher '${publisher}' have failed for ${age}: ${describeError(error)}`,
  }
}

function unroutedFlags(byTopic: Record<string, number>): HealthFlag[] {
  return Object.entries(byTopic).map(([topic, count]) => ({
    flag: 'unrouted',
    message: `${countOf(count, 'event')} ${count === 1 ? 'waits' : 'wait'} for the topic '${topic}', which has no route; add one, or set the option 'otherwise' of routerPublisher()`,
  }))
}

interface ResolvedLimits {
  readonly maxPending: number
  readonly maxFailureRate: number
  readonly maxPollMs: number
  readonly maxDead: number
  readonly maxSlotBytes: number
}

function resolveLimits(limits: HealthLimits, deadLettersHold: boolean): ResolvedLimits {
  const known = ['maxPending', 'maxFailureRate', 'maxPoll', 'maxDead', 'maxSlotBytes']
  rejectUnknown('health()', limits, known)
  const { maxPending = 1_000, maxFailureRate = 0.05, maxPoll = '5s' } = limits
  const { maxSlotBytes = MOST_SLOT_BYTES } = limits
  const { maxDead = deadLettersHold ? 0 : Number.MAX_SAFE_INTEGER } = limits
  if (!(maxFailureRate >= 0 && maxFailureRate <= 1)) {
    throw new OutboxOptionsError(
      `maxFailureRate must be a number from 0 to 1, got ${show(maxFailureRate)}`,
    )
  }
  return {
    maxPending: requireCount('maxPending', maxPending, 2 ** 30, 0),
    maxFailureRate,
    maxPollMs: requireDuration('maxPoll', maxPoll, 1),
    maxDead: requireCount('maxDead', maxDead, Number.MAX_SAFE_INTEGER, 0),
    maxSlotBytes: requireCount('maxSlotBytes', maxSlotBytes, Number.MAX_SAFE_INTEGER, 0),
  }
}

function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
