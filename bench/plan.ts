// What is run, against whom, and for how long. Contenders take turns within each round, so that whatever the
// machine does meanwhile meets them all.
import { type Arena, type DrainResult, OURS, type Variant } from './arena.ts'
import type { BenchArguments } from './arguments.ts'
import { type ContenderName, PEERS } from './contender.ts'
import { type Load, warmUpSeconds } from './job.ts'
import { type LoadTurn, nameOf, type Results } from './results.ts'
import { summarizeDrains, summarizeHistory, summarizeLoads } from './summarize.ts'

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
  const steps: Step[] = []
  const loads = (workload: string, variants: readonly Variant[], job: Load, paced = false) => {
    steps.push(...loadSteps(workload, variants, rounds, job, paced))
  }
  const has = (name: (typeof only)[number]) => only.includes(name)

  if (has('throughput')) {
    const load = (concurrency: number): Load => ({ ...ONE_EVENT, seconds, concurrency })
    const quickest = EVERYBODY.filter((one) => isQuick(one))
    if (!quick) loads('throughput 16', quickest, load(16))
    loads('throughput 64', quick ? quickest : EVERYBODY, load(64))
  }
  if (has('latency')) {
    const load: Load = { ...ONE_EVENT, seconds: quick ? 3 : 10, concurrency: 1, perSecond: 50 }
    const field = quick ? [OURS, DUAL_WRITE] : [OURS, DUAL_WRITE, TEXTBOOK, ...TUNED_PEERS]
    loads('latency', field, load, true)
  }
  if (has('overhead')) steps.push(overheadStep(quick ? 200 : 1_500))
  if (has('drain')) {
    const rows = quick ? 20_000 : 200_000
    const limitSeconds = quick ? 10 : 60
    const all = { rows, payloadBytes: 1_000, limitSeconds }
    // At their speed the rest would be waiting.
    const some = { rows: quick ? 4_000 : 10_000, payloadBytes: 1_000, limitSeconds: 15 }
    // Few enough to be done in time: by several that send the same, what was lost is only known at the end.
    const forFour = { rows: 4_000, payloadBytes: 1_000, limitSeconds: 60, instances: 4 }
    for (let round = 0; round < rounds; round += 1) {
      for (const variant of [OURS, OURS_TUNED, KAFKAJS_ONLY]) {
        steps.push(drainStep('drain', variant, all))
      }
      for (const variant of quick ? [tuned('pg-boss')] : [TEXTBOOK, ...TUNED_PEERS]) {
        steps.push(drainStep('drain', variant, some))
      }
      if (quick) continue
      steps.push(drainStep('drain with two', OURS, { ...all, instances: 2 }))
      for (const variant of [OURS, tuned('nest-native-messaging')]) {
        steps.push(drainStep('drain with four', variant, forFour))
      }
    }
  }
  if (has('history')) {
    const sizes = quick ? [0, 100_000] : [0, 1_000_000, 10_000_000]
    steps.push(...historySteps(sizes, quick ? 10_000 : 50_000, rounds))
  }
  if (!quick) {
    const field = [OURS, DUAL_WRITE, tuned('graphile-worker')]
    const load: Load = { ...ONE_EVENT, seconds, concurrency: 16 }
    if (has('hotkey')) loads('hotkey', field, { ...load, keys: 1 })
    if (has('fanout')) loads('fanout', field, { ...load, eventsPerUnit: 100, payloadBytes: 100 })
    if (has('payload')) {
      for (const payloadBytes of [100, 1_000, 50_000]) {
        loads(`payload ${payloadBytes}`, field, { ...load, payloadBytes })
      }
    }
  }
  if (has('idle')) steps.push(idleStep(quick ? 10 : 60))
  return steps
}

/** Whoever is quickest of its kind. */
function isQuick({ contender, tuned: isTuned }: Variant): boolean {
  return isTuned || !PEERS.some((peer) => peer === contender)
}

function loadSteps(
  workload: string,
  variants: readonly Variant[],
  rounds: number,
  job: Load,
  paced: boolean,
): Step[] {
  const turns = new Map<string, LoadTurn[]>()
  const round = variants.map((variant): Step => {
    const name = nameOf(variant)
    return {
      contender: variant.contender,
      label: `${workload}: ${name}`,
      weight: warmUpSeconds(job.seconds) + job.seconds + OVERHEAD_SECONDS,
      async run(arena, results) {
        if (paced && cannotKeepUp(results, name, job.perSecond!)) return
        const so = turns.get(name) ?? []
        so.push(await arena.load(variant, job))
        turns.set(name, so)
        ;(results.loads[workload] ??= {})[name] = summarizeLoads(so)
      },
    }
  })
  return Array.from({ length: rounds }, () => round).flat()
}

// At a pace above its throughput a contender's latency says how long one has waited, and nothing else.
function cannotKeepUp({ loads }: Results, name: string, perSecond: number): boolean {
  const known = loads['throughput 64']?.[name]
  return known !== undefined && known.perSecond < perSecond
}

const drained = new Map<string, DrainResult[]>()

function drainStep(
  workload: string,
  variant: Variant,
  request: Parameters<Arena['drain']>[1],
): Step {
  const name = nameOf(variant)
  return {
    contender: variant.contender,
    label: `${workload}: ${name}`,
    weight: request.rows / 10_000 + 10 + OVERHEAD_SECONDS,
    async run(arena, results) {
      const key = `${workload} ${name}`
      const so = drained.get(key) ?? []
      so.push(await arena.drain(variant, request))
      drained.set(key, so)
      ;(results.drains[workload] ??= {})[name] = summarizeDrains(so)
    },
  }
}

function historySteps(sizes: readonly number[], rows: number, rounds: number): Step[] {
  const turns = new Map<number, Awaited<ReturnType<Arena['history']>>[]>()
  const fills = sizes.map((published): Step => {
    return {
      contender: OURS.contender,
      label: `history: making ${published} published rows`,
      weight: published / 50_000 + 2,
      run: (arena) => arena.fillHistory(published),
    }
  })
  const round = sizes.map((published): Step => {
    return {
      contender: OURS.contender,
      label: `history: ${published} published rows`,
      weight: OVERHEAD_SECONDS + 10,
      async run(arena, results) {
        const so = turns.get(published) ?? []
        so.push(await arena.history(published, rows))
        turns.set(published, so)
        results.history = [...turns].map(([size, all]) => summarizeHistory(size, all))
      },
    }
  })
  return [...fills, ...Array.from({ length: rounds }, () => round).flat()]
}

function overheadStep(units: number): Step {
  return {
    contender: OURS.contender,
    label: 'overhead of a unit of work',
    weight: (units * 3) / 80 + OVERHEAD_SECONDS,
    async run(arena, results) {
      results.overhead = await arena.overhead(units)
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
