// The steps of a plan: each runs one turn in the arena and puts the figures of all its turns so far into the results.
import type { Arena } from './arena.ts'
import type { ContenderName } from './contender.ts'
import type { DrainRequest } from './drain-watch.ts'
import type { ClaimsResult, Load, OverheadResult } from './job.ts'
import { PROCESS_SECONDS, secondsOfDrain, secondsOfLoad } from './pace.ts'
import { type ClaimFigures, type HistoryFigures, nameOf, type Results } from './results.ts'
import { EMPTY_SCENE, rowsOf, type Scene, SCENES } from './scenes.ts'
import {
  summarizeClaims,
  summarizeDrains,
  summarizeHistory,
  summarizeLoads,
  summarizeOverhead,
} from './summarize.ts'
import { type DrainResult, type LoadTurn, OURS, type Variant } from './turn.ts'

export interface Step {
  readonly contender: ContenderName
  /** What it is a turn of. */
  readonly workload: string
  readonly label: string
  /** About how many seconds. */
  readonly weight: number
  run(arena: Arena, results: Results): Promise<void>
}

const WARM_UP = 'warming up Postgres and Kafka'
const SESSIONS = 'ending processes'

// A broker is compiled while it is used, and whoever came first would pay for it.
export function warmUpStep(run: (arena: Arena) => Promise<unknown>, seconds: number): Step {
  return {
    contender: 'dual-write',
    workload: WARM_UP,
    label: WARM_UP,
    weight: seconds,
    async run(arena) {
      await run(arena)
    },
  }
}

/** Each round begins with another one, so that nobody always comes after the same. */
export function inTurns<T>(some: readonly T[], rounds: number): T[] {
  return Array.from({ length: rounds }, (_, n) => {
    const first = Math.floor((n * some.length) / rounds)
    return [...some.slice(first), ...some.slice(0, first)]
  }).flat()
}

/** A workload, and who takes part in it for how many rounds. */
export interface Leg {
  readonly workload: string
  readonly load: Load
  readonly variants: readonly Variant[]
  readonly rounds: number
}

/** The turns of all sessions so far, by workload and contender. */
export class LoadTurns {
  readonly #turns = new Map<string, { workload: string; name: string; turns: LoadTurn[] }>()

  add(workload: string, name: string, turn: LoadTurn): void {
    const key = `${workload}: ${name}`
    const known = this.#turns.get(key) ?? { workload, name, turns: [] }
    this.#turns.set(key, known)
    known.turns.push(turn)
  }

  /** Anew for all, as it is known later what arrived. */
  summarize({ loads }: Results): void {
    for (const { workload, name, turns } of this.#turns.values()) {
      ;(loads[workload] ??= {})[name] = summarizeLoads(turns)
    }
  }
}

/** Loads in one session of each contender. Their processes are there at the same time, but only one has work to do. */
export function sessionSteps(legs: readonly Leg[], turns: LoadTurns): Step[] {
  const known = new Map<string, Variant>()
  const kinds = new Set<string>()
  const loads = legs.flatMap(({ workload, load, variants, rounds }) =>
    inTurns(variants, rounds).map((variant): Step => {
      const name = nameOf(variant)
      const label = `${workload}: ${name}`
      const isKnown = kinds.has(label) || load.perSecond !== undefined
      const weight = secondsOfLoad(
        variant,
        load,
        !known.has(name) ? 'first' : isKnown ? 'known' : 'new',
      )
      known.set(name, variant)
      kinds.add(label)
      return {
        contender: variant.contender,
        workload,
        label,
        weight,
        async run(arena, results) {
          if (cannotKeepUp(results, name, load)) return
          turns.add(workload, name, await arena.load(variant, load))
          turns.summarize(results)
        },
      }
    }),
  )
  const ends = [...known.values()].map((variant): Step => {
    return {
      contender: variant.contender,
      workload: SESSIONS,
      label: `the end of ${nameOf(variant)}`,
      weight: 1,
      run: (arena, results) => arena.endSession(variant, () => turns.summarize(results)),
    }
  })
  return [...loads, ...ends]
}

// At a pace above its throughput a contender's latency says how long one has waited, and nothing else.
function cannotKeepUp({ loads }: Results, name: string, { perSecond = 0 }: Load): boolean {
  const known = loads['throughput 64']?.[name]
  return known !== undefined && known.perSecond < perSecond
}

export function drainStep(workload: string, variant: Variant, request: DrainRequest): Step {
  const name = nameOf(variant)
  const turns: DrainResult[] = []
  return {
    contender: variant.contender,
    workload,
    label: `${workload}: ${name}`,
    weight: secondsOfDrain(variant, request),
    async run(arena, results) {
      await arena.drain(variant, request, (turn) => {
        turns.push(turn)
        ;(results.drains[workload] ??= {})[name] = summarizeDrains(turns)
      })
    },
  }
}

const HISTORY_DRAIN = { payloadBytes: 100, limitSeconds: 120 }

export function historySteps(sizes: readonly number[], rows: number, rounds: number): Step[] {
  const figures = new Map<number, HistoryFigures>()
  const fills = sizes.map((published): Step => {
    return {
      contender: OURS.contender,
      workload: 'history',
      label: `history: making ${published} published rows`,
      weight: PROCESS_SECONDS + published / 60_000,
      run: (arena) => arena.fillHistory(published),
    }
  })
  const round = sizes.map((published): Step => {
    const turns: Omit<HistoryFigures, 'published'>[] = []
    return {
      contender: OURS.contender,
      workload: 'history',
      label: `history: ${published} published rows`,
      weight: PROCESS_SECONDS + 1 + secondsOfDrain(OURS, { ...HISTORY_DRAIN, rows }),
      async run(arena, results) {
        turns.push(await arena.history(published, { ...HISTORY_DRAIN, rows }))
        figures.set(published, summarizeHistory(published, turns))
        results.history = [...figures.values()].toSorted((a, b) => a.published - b.published)
      },
    }
  })
  return [...fills, ...inTurns(round, rounds)]
}

export function claimSteps(most: number, claims: number, rounds: number): Step[] {
  const figures = new Map<Scene, ClaimFigures>()
  const fills = SCENES.map((scene): Step => {
    const rows = rowsOf(scene, most)
    return {
      contender: OURS.contender,
      workload: 'claims',
      label: `claims: making ${rows} rows, ${scene}`,
      weight: PROCESS_SECONDS + rows / (scene.startsWith('published') ? 12_000 : 30_000),
      run: (arena) => arena.fillScene(scene, rows),
    }
  })
  const round = SCENES.map((scene): Step => {
    const turns: ClaimsResult[] = []
    return {
      contender: OURS.contender,
      workload: 'claims',
      label: `claims: ${scene}`,
      weight: PROCESS_SECONDS + claims / 8,
      async run(arena, results) {
        turns.push(await arena.claims(scene, claims))
        figures.set(scene, summarizeClaims({ scene, rows: rowsOf(scene, most) }, turns))
        results.claims = SCENES.flatMap((one) => figures.get(one) ?? [])
      },
    }
  })
  // All others are compared with it in their own turns, so its own is only shown.
  const isEmpty = ({ label }: Step) => label === `claims: ${EMPTY_SCENE}`
  const crowded = round.filter((step) => !isEmpty(step))
  return [...fills, ...round.filter(isEmpty), ...inTurns(crowded, rounds)]
}

export function overheadStep(units: number): Step {
  const turns: OverheadResult[] = []
  return {
    contender: OURS.contender,
    workload: 'overhead',
    label: 'overhead of a unit of work',
    weight: PROCESS_SECONDS + (units * 3) / 90 + 12,
    async run(arena, results) {
      turns.push(await arena.overhead(units))
      results.overhead = summarizeOverhead(turns)
    },
  }
}

export function idleStep(seconds: number): Step {
  return {
    contender: OURS.contender,
    workload: 'idle',
    label: 'idle',
    weight: PROCESS_SECONDS + 3 + seconds,
    async run(arena, results) {
      results.idleStatementsPerSecond = await arena.idle(seconds)
    },
  }
}
