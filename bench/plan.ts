// What is run, against whom, and for how long. Contenders take turns within each round, so that whatever the
// machine does meanwhile meets them all.
import { type Arena, type DrainResult, OURS, type Variant } from './arena.ts'
import type { BenchArguments } from './arguments.ts'
import { type ContenderName, PEERS } from './contender.ts'
import { type Load, type OverheadResult, warmUpSeconds } from './job.ts'
import { type HistoryFigures, type LoadTurn, nameOf, type Results } from './results.ts'
import {
  summarizeDrains,
  summarizeHistory,
  summarizeLoads,
  summarizeOverhead,
} from './summarize.ts'

export interface Step {
  readonly contender: ContenderName
  readonly label: string
  /** About how many seconds. */
  readonly weight: number
  run(arena: Arena, results: Results): Promise<void>
}

/** What it takes to start a process and make its tables. */
const OVERHEAD_SECONDS = 5

const byDefault = (contender: ContenderName): Variant => ({ contender, tuned: false })
const tuned = (contender: ContenderName): Variant => ({ contender, tuned: true })

const DUAL_WRITE = byDefault('dual-write')
const TEXTBOOK = byDefault('textbook')
const BARE_IDEA = byDefault('bare-idea')
const EMIT_IN = byDefault('emit-in')
const POSTGRES_ONLY = byDefault('postgres-only')
const KAFKAJS_ONLY = byDefault('kafkajs-only')
const OURS_TUNED = tuned('aftercommit')
const TUNED_PEERS = PEERS.map(tuned)
const EVERYBODY = [
  OURS,
  OURS_TUNED,
  DUAL_WRITE,
  TEXTBOOK,
  BARE_IDEA,
  POSTGRES_ONLY,
  ...PEERS.flatMap((peer) => [byDefault(peer), tuned(peer)]),
]

const ONE_EVENT = { kind: 'load', eventsPerUnit: 1, payloadBytes: 1_000 } as const

export function makePlan({ quick, only }: BenchArguments): Step[] {
  const rounds = quick ? 1 : 3
  const seconds = quick ? 2 : 5
  const steps = [warmUpStep(quick ? 5 : 20)]
  const loads = (
    workload: string,
    variants: readonly Variant[],
    job: Load,
    { paced = false, times = rounds } = {},
  ) => {
    steps.push(...loadSteps(workload, variants, times, job, paced))
  }
  const has = (name: (typeof only)[number]) => only.includes(name)

  if (has('throughput')) {
    const load = (concurrency: number): Load => ({ ...ONE_EVENT, seconds, concurrency })
    const [quickest, others] = [EVERYBODY.filter(isQuick), EVERYBODY.filter((one) => !isQuick(one))]
    if (!quick) loads('throughput 16', quickest, load(16))
    // Most targets are about these: a slow spell of the machine must not be the middle of three.
    loads('throughput 64', quickest, load(64), { times: quick ? 1 : 5 })
    if (!quick) loads('throughput 64', others, load(64))
  }
  if (has('latency')) {
    const load: Load = { ...ONE_EVENT, seconds: quick ? 3 : 10, concurrency: 1, perSecond: 50 }
    const field = [OURS, EMIT_IN, DUAL_WRITE, ...(quick ? [] : [TEXTBOOK, ...TUNED_PEERS])]
    loads('latency', field, load, { paced: true })
  }
  if (has('overhead')) steps.push(...inTurns([overheadStep(quick ? 200 : 500)], rounds))
  if (has('drain')) {
    const rows = quick ? 20_000 : 200_000
    const limitSeconds = quick ? 10 : 60
    const all = { rows, payloadBytes: 1_000, limitSeconds }
    const some = { payloadBytes: 1_000, limitSeconds: 15 }
    // Few enough to be done in time: by several that send the same, what was lost is only known at the end.
    const forFour = { rows: 4_000, payloadBytes: 1_000, limitSeconds: 60, instances: 4 }
    const peers = quick ? [tuned('pg-boss')] : [TEXTBOOK, ...TUNED_PEERS]
    const round = [
      ...[OURS, OURS_TUNED, KAFKAJS_ONLY].map((variant) => drainStep('drain', variant, all)),
      ...peers.map((variant) => {
        const enough = quick ? 20_000 : rowsFor(variant.contender)
        return drainStep('drain', variant, { ...some, rows: enough })
      }),
    ]
    const crowds = [
      drainStep('drain with two', OURS, { ...all, instances: 2 }),
      ...[OURS, tuned('nest-native-messaging')].map((variant) =>
        drainStep('drain with four', variant, forFour),
      ),
    ]
    steps.push(...inTurns(quick ? round : [...round, ...crowds], rounds))
  }
  if (has('history')) {
    const sizes = quick ? [0, 100_000] : [0, 1_000_000, 10_000_000]
    steps.push(...historySteps(sizes, quick ? 10_000 : 50_000, rounds))
  }
  const field = [OURS, DUAL_WRITE, tuned('graphile-worker')]
  const load: Load = { ...ONE_EVENT, seconds, concurrency: 16 }
  if (has('hotkey')) loads('hotkey', field, { ...load, keys: 1 })
  if (has('fanout')) loads('fanout', field, { ...load, eventsPerUnit: 100, payloadBytes: 100 })
  if (has('payload')) {
    for (const payloadBytes of [100, 1_000, 50_000]) {
      loads(`payload ${payloadBytes}`, field, { ...load, payloadBytes })
    }
  }
  if (has('idle')) steps.push(idleStep(quick ? 10 : 60))
  return steps
}

/** Whoever is quickest of its kind. */
function isQuick({ contender, tuned: isTuned }: Variant): boolean {
  return isTuned || !PEERS.some((peer) => peer === contender)
}

// A broker is compiled while it is used, and whoever came first would pay for it.
function warmUpStep(seconds: number): Step {
  return {
    contender: DUAL_WRITE.contender,
    label: 'warming up Postgres and Kafka',
    weight: seconds + OVERHEAD_SECONDS,
    async run(arena) {
      await arena.load(DUAL_WRITE, { ...ONE_EVENT, seconds, concurrency: 64 })
    },
  }
}

/** Each round begins with another one, so that nobody always comes after the same. */
function inTurns(steps: readonly Step[], rounds: number): Step[] {
  return Array.from({ length: rounds }, (_, n) => {
    const first = Math.floor((n * steps.length) / rounds)
    return [...steps.slice(first), ...steps.slice(0, first)]
  }).flat()
}

function loadSteps(
  workload: string,
  variants: readonly Variant[],
  rounds: number,
  job: Load,
  paced: boolean,
): Step[] {
  const round = variants.map((variant): Step => {
    const name = nameOf(variant)
    const turns: LoadTurn[] = []
    return {
      contender: variant.contender,
      label: `${workload}: ${name}`,
      weight: warmUpSeconds(job.seconds) + job.seconds + OVERHEAD_SECONDS,
      async run(arena, results) {
        if (paced && cannotKeepUp(results, name, job.perSecond!)) return
        turns.push(await arena.load(variant, job))
        ;(results.loads[workload] ??= {})[name] = summarizeLoads(turns)
      },
    }
  })
  return inTurns(round, rounds)
}

// At a pace above its throughput a contender's latency says how long one has waited, and nothing else.
function cannotKeepUp({ loads }: Results, name: string, perSecond: number): boolean {
  const known = loads['throughput 64']?.[name]
  return known !== undefined && known.perSecond < perSecond
}

/** Enough for the time that it is given; more would only have to be written first. */
function rowsFor(peer: ContenderName): number {
  if (peer === 'pg-boss') return 120_000
  return peer === 'graphile-worker' ? 50_000 : 10_000
}

function drainStep(
  workload: string,
  variant: Variant,
  request: Parameters<Arena['drain']>[1],
): Step {
  const name = nameOf(variant)
  const turns: DrainResult[] = []
  return {
    contender: variant.contender,
    label: `${workload}: ${name}`,
    weight: request.rows / 10_000 + 10 + OVERHEAD_SECONDS,
    async run(arena, results) {
      turns.push(await arena.drain(variant, request))
      ;(results.drains[workload] ??= {})[name] = summarizeDrains(turns)
    },
  }
}

function historySteps(sizes: readonly number[], rows: number, rounds: number): Step[] {
  const figures = new Map<number, HistoryFigures>()
  const fills = sizes.map((published): Step => {
    return {
      contender: OURS.contender,
      label: `history: making ${published} published rows`,
      weight: published / 50_000 + 2,
      run: (arena) => arena.fillHistory(published),
    }
  })
  const round = sizes.map((published): Step => {
    const turns: Omit<HistoryFigures, 'published'>[] = []
    return {
      contender: OURS.contender,
      label: `history: ${published} published rows`,
      weight: OVERHEAD_SECONDS + 10,
      async run(arena, results) {
        turns.push(await arena.history(published, rows))
        figures.set(published, summarizeHistory(published, turns))
        results.history = [...figures.values()].toSorted((a, b) => a.published - b.published)
      },
    }
  })
  return [...fills, ...inTurns(round, rounds)]
}

function overheadStep(units: number): Step {
  const turns: OverheadResult[] = []
  return {
    contender: OURS.contender,
    label: 'overhead of a unit of work',
    weight: (units * 3) / 80 + 15 + OVERHEAD_SECONDS,
    async run(arena, results) {
      turns.push(await arena.overhead(units))
      results.overhead = summarizeOverhead(turns)
    },
  }
}

function idleStep(seconds: number): Step {
  return {
    contender: OURS.contender,
    label: 'idle',
    weight: seconds + OVERHEAD_SECONDS,
    async run(arena, results) {
      results.idleStatementsPerSecond = await arena.idle(seconds)
    },
  }
}
