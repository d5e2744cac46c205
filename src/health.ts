// A look inside: what the table holds, how this process has been doing, and whether that is a worry.
// Read only. Nothing on the path depends on it.
import { performance } from 'node:perf_hooks'
import type { Circuits } from './circuit.ts'
import { type Duration, formatDuration, show } from './duration.ts'
import { OutboxOptionsError, toError } from './errors.ts'
import type { Lifecycle } from './lifecycle.ts'
import type { Store, TableStats } from './store/store.ts'
import { rejectUnknown, requireCount, requireDuration } from './validate.ts'

/** What the table holds, and what this process did in the last minute. */
export interface OutboxStats extends TableStats {
  readonly lastMinute: {
    readonly published: number
    /** Tries that came to nothing, whatever the reason. */
    readonly failed: number
    /** Rounds of the fallback that found something. */
    readonly polls: number
    /** The longest of these rounds. */
    readonly longestPollMs: number
  }
}

export interface HealthLimits {
  /** Unsent events in the table. @default 1000 */
  maxPending?: number
  /** The share of tries that failed in the last minute, once there were 20 of them. @default 0.05 */
  maxFailureRate?: number
  /** The longest round of the fallback in the last minute. @default '5s' */
  maxPoll?: Duration
}

export interface HealthFlag {
  readonly flag: 'database' | 'circuit' | 'pending' | 'failures' | 'poll'
  readonly message: string
}

export interface OutboxHealth {
  readonly ok: boolean
  /** What is wrong; empty when all is well. */
  readonly flags: readonly HealthFlag[]
  /** null when the database could not be asked. */
  readonly stats: OutboxStats | null
}

const WINDOW_MS = 60_000
const FEWEST_TRIES = 20

export class Health {
  readonly #store: Pick<Store<never>, 'stats'>
  readonly #circuits: Pick<Circuits, 'unreachable'>
  #seconds: { at: number; published: number; failed: number; polls: number; longestMs: number }[] =
    []

  constructor(
    store: Pick<Store<never>, 'stats'>,
    circuits: Pick<Circuits, 'unreachable'>,
    { events }: Lifecycle,
  ) {
    this.#store = store
    this.#circuits = circuits
    events.on('event:published', () => {
      this.#thisSecond().published += 1
    })
    const failed = () => {
      this.#thisSecond().failed += 1
    }
    events.on('event:failed', failed)
    events.on('event:dead', failed)
  }

  /** Told by the poller's loop. */
  polled(tookMs: number): void {
    const second = this.#thisSecond()
    second.polls += 1
    second.longestMs = Math.max(second.longestMs, tookMs)
  }

  async stats(): Promise<OutboxStats> {
    const table = await this.#store.stats()
    const lastMinute = { published: 0, failed: 0, polls: 0, longestPollMs: 0 }
    this.#forgetOld()
    for (const { published, failed, polls, longestMs } of this.#seconds) {
      lastMinute.published += published
      lastMinute.failed += failed
      lastMinute.polls += polls
      lastMinute.longestPollMs = Math.max(lastMinute.longestPollMs, longestMs)
    }
    return { ...table, lastMinute }
  }

  async health(limits: HealthLimits = {}): Promise<OutboxHealth> {
    const resolved = resolveLimits(limits)
    const flags: HealthFlag[] = this.#circuits.unreachable().map((destination) => ({
      flag: 'circuit',
      message: `${destination === null ? 'the broker' : `the topic '${destination}'`} is out of reach`,
    }))
    let stats: OutboxStats | null = null
    try {
      stats = await this.stats()
      flags.push(...redFlags(stats, resolved))
    } catch (thrown) {
      flags.push({ flag: 'database', message: toError(thrown).message })
    }
    return { ok: flags.length === 0, flags, stats }
  }

  #thisSecond() {
    const at = Math.floor(performance.now() / 1_000) * 1_000
    let last = this.#seconds.at(-1)
    if (last?.at !== at) {
      this.#forgetOld()
      last = { at, published: 0, failed: 0, polls: 0, longestMs: 0 }
      this.#seconds.push(last)
    }
    return last
  }

  #forgetOld(): void {
    const since = performance.now() - WINDOW_MS
    this.#seconds = this.#seconds.filter(({ at }) => at > since)
  }
}

function redFlags({ pending, lastMinute }: OutboxStats, limits: ResolvedLimits): HealthFlag[] {
  const { published, failed, longestPollMs } = lastMinute
  const flags: HealthFlag[] = []
  if (pending.count > limits.maxPending) {
    const message = `${pending.count} events wait, more than ${limits.maxPending}`
    flags.push({ flag: 'pending', message })
  }
  const tries = published + failed
  if (tries >= FEWEST_TRIES && failed / tries > limits.maxFailureRate) {
    const message = `${failed} of ${tries} tries failed in the last minute`
    flags.push({ flag: 'failures', message })
  }
  if (longestPollMs > limits.maxPollMs) {
    const took = `${Math.round(longestPollMs)}ms`
    const message = `a round of the fallback took ${took}, longer than ${formatDuration(limits.maxPollMs)}`
    flags.push({ flag: 'poll', message })
  }
  return flags
}

interface ResolvedLimits {
  readonly maxPending: number
  readonly maxFailureRate: number
  readonly maxPollMs: number
}

function resolveLimits(limits: HealthLimits): ResolvedLimits {
  rejectUnknown('health()', limits, ['maxPending', 'maxFailureRate', 'maxPoll'])
  const { maxPending = 1_000, maxFailureRate = 0.05, maxPoll = '5s' } = limits
  if (!(maxFailureRate >= 0 && maxFailureRate <= 1)) {
    throw new OutboxOptionsError(
      `maxFailureRate must be a share from 0 to 1, got ${show(maxFailureRate)}`,
    )
  }
  return {
    maxPending: requireCount('maxPending', maxPending, Number.MAX_SAFE_INTEGER, 0),
    maxFailureRate,
    maxPollMs: requireDuration('maxPoll', maxPoll, 1),
  }
}
