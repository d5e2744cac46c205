// The steps of a plan: each runs one turn in the arena and puts the figures of all its turns so far into the results.
import { type Arena, type DrainResult, OURS, type Variant } from './arena.ts'
import type { ContenderName } from './contender.ts'
import { type ClaimsResult, type Load, type OverheadResult, WARM_UP } from './job.ts'
import {
  type ClaimFigures,
  type HistoryFigures,
  type LoadTurn,
  nameOf,
  type Results,
} from './results.ts'
import { rowsOf, type Scene, SCENES } from './scenes.ts'
import {
  summarizeClaims,
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

// A broker is compiled while it is used, and whoever came first would pay for it.
export function warmUpStep(run: (arena: Arena) => Promise<unknown>, seconds: number): Step {
  return {
    contender: 'dual-write',
    label: 'warming up Postgres and Kafka',
    weight: seconds + OVERHEAD_SECONDS,
    async run(arena) {
      await run(arena)
    },
  }
}

/** Each round begins with another one, so that nobody always comes after the same. */
export function inTurns(steps: readonly Step[], rounds: number): Step[] {
  return Array.from({ length: rounds }, (_, n) => {
    const first = Math.floor((n * steps.length) / rounds)
    return [...steps.slice(first), ...steps.slice(0, first)]
  }).flat()
}

export function loadSteps(
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
      weight: WARM_UP.seconds + job.seconds + OVERHEAD_SECONDS,
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

export function drainStep(
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

export function historySteps(sizes: readonly number[], rows: number, rounds: number): Step[] {
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

export function claimSteps(most: number, claims: number, rounds: number): Step[] {
  const figures = new Map<Scene, ClaimFigures>()
  const fills = SCENES.map((scene): Step => {
    const rows = rowsOf(scene, most)
    return {
      contender: OURS.contender,
      label: `claims: making ${rows} rows, ${scene}`,
      weight: rows / 15_000 + 2,
      run: (arena) => arena.fillScene(scene, rows),
    }
  })
  const round = SCENES.map((scene): Step => {
    const turns: ClaimsResult[] = []
    return {
      contender: OURS.contender,
      label: `claims: ${scene}`,
      weight: OVERHEAD_SECONDS,
      async run(arena, results) {
        turns.push(await arena.claims(scene, claims))
        figures.set(scene, summarizeClaims({ scene, rows: rowsOf(scene, most) }, turns))
        results.claims = SCENES.flatMap((one) => figures.get(one) ?? [])
      },
    }
  })
  return [...fills, ...inTurns(round, rounds)]
}

export function overheadStep(units: number): Step {
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

export function idleStep(seconds: number): Step {
  return {
    contender: OURS.contender,
    label: 'idle',
    weight: seconds + OVERHEAD_SECONDS,
    async run(arena, results) {
      results.idleStatementsPerSecond = await arena.idle(seconds)
    },
  }
}
