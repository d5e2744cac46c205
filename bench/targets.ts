// What is promised, and what came out: each a ratio within the run.
import { PEERS } from './contender.ts'
import type { DrainFigures, LoadFigures, Results } from './results.ts'

export interface Target {
  readonly key: string
  readonly is: 'at least' | 'at most'
  readonly target: number
  /** null: not part of this run. */
  readonly figure: number | null
  /** From our worst round against their best to our best against their worst; null: not kept by round. */
  readonly range: readonly [number, number] | null
}

/** A median, and the rounds that it is of. */
interface Rated {
  readonly median: number
  readonly each: readonly number[]
}

const OURS = 'aftercommit'

export function judgeTargets(results: Results): Target[] {
  const { loads, drains, history, overhead, idleStatementsPerSecond } = results
  const busy = loads['throughput 64']
  const calm = loads['latency']
  const drain = drains['drain']
  const ours = busy?.[OURS]
  const dual = busy?.['dual-write']
  const fresh = history.find(({ published }) => published === 0)
  const longest = history.findLast(({ published }) => published > 0)

  return [
    atLeast('throughput against dual-write, 64 concurrent', 1, loadRate(ours), loadRate(dual)),
    atLeast(
      'throughput against the best peer, 64 concurrent',
      3,
      loadRate(ours),
      bestPeer(busy, loadRate),
    ),
    ...latency('50 a second', [1.2, 1.5], calm),
    ...latency('64 concurrent', [0.3, 0.5], busy),
    atMost('latency p50 of emitIn(), 50 a second, in ms', 100, calm?.['emit-in']?.latencyMs.p50, 1),
    atLeast(
      'throughput against postgres-only, 64 concurrent',
      0.6,
      loadRate(ours),
      loadRate(busy?.['postgres-only']),
    ),
    atMost(
      'overhead against the hand-written INSERT',
      1.05,
      overhead?.withOutboxMs,
      overhead?.handWrittenMs,
    ),
    atLeast(
      'drain against kafkajs-only, one instance',
      0.5,
      drainRate(drain?.[OURS]),
      drainRate(drain?.['kafkajs-only']),
    ),
    atLeast('drain against the best peer', 5, drainRate(drain?.[OURS]), bestPeer(drain, drainRate)),
    atMost('history: a poll, the longest against none', 1.2, longest?.pollMs, fresh?.pollMs),
    atMost(
      'history: drain time, the longest against none',
      1.2,
      fresh?.rowsPerSecond,
      longest?.rowsPerSecond,
    ),
    atMost(
      "statements per event at 64 concurrent, beyond the business's own",
      1.2,
      ours && busy?.['postgres-only']
        ? ours.statementsPerEvent - busy['postgres-only'].statementsPerEvent
        : undefined,
      1,
    ),
    atMost('idle queries per second per process', 0.5, idleStatementsPerSecond ?? undefined, 1),
    atLeast(
      'default settings against tuned ones, throughput at 64 concurrent',
      0.8,
      loadRate(ours),
      loadRate(busy?.[`${OURS} (tuned)`]),
    ),
    atLeast(
      'default settings against tuned ones, drain',
      0.8,
      drainRate(drain?.[OURS]),
      drainRate(drain?.[`${OURS} (tuned)`]),
    ),
  ]

  function latency(at: string, [p50, p99]: [number, number], of: typeof busy): Target[] {
    const [mine, theirs] = [of?.[OURS]?.latencyMs, of?.['dual-write']?.latencyMs]
    return [
      atMost(`latency p50 against dual-write, ${at}`, p50, mine?.p50, theirs?.p50),
      atMost(`latency p99 against dual-write, ${at}`, p99, mine?.p99, theirs?.p99),
    ]
  }
}

function loadRate(figures: LoadFigures | undefined): Rated | undefined {
  return figures && { median: figures.perSecond, each: figures.perSecondEach }
}

function drainRate(figures: DrainFigures | undefined): Rated | undefined {
  return figures && { median: figures.rowsPerSecond, each: figures.rowsPerSecondEach }
}

function bestPeer<T>(
  of: Record<string, T> | undefined,
  rate: (one: T | undefined) => Rated | undefined,
): Rated | undefined {
  const peers = PEERS.flatMap((peer) => [rate(of?.[peer]), rate(of?.[`${peer} (tuned)`])])
  const rated = peers.filter((one) => one !== undefined)
  return rated.toSorted((a, b) => b.median - a.median)[0]
}

/** Whether the rounds were so far apart that another run might say the opposite. */
export function isUnclear({ target, range }: Target): boolean {
  return range !== null && range[0] < target && target < range[1]
}

export function isMet({ is, target, figure }: Target): boolean | null {
  if (figure === null) return null
  return is === 'at least' ? figure >= target : figure <= target
}

/** Whether nothing of ours was lost and each of our turns came to a figure. A missed target is one like any other. */
export function isSound({ loads, drains, history, failures }: Results): boolean {
  const figures = [...Object.values(loads), ...Object.values(drains)].flatMap(
    (of): { readonly lost: number }[] => [of[OURS], of[`${OURS} (tuned)`]].filter((one) => !!one),
  )
  const lost = [...figures, ...history].reduce((sum, one) => sum + one.lost, 0)
  return lost === 0 && !failures.some(({ contender }) => contender === OURS)
}

function atLeast(key: string, target: number, mine?: Rated, other?: Rated): Target {
  const figure = ratio(mine?.median, other?.median)
  const [low, high] = [Math.min, Math.max]
  const range =
    mine && other
      ? ([
          low(...mine.each) / high(...other.each),
          high(...mine.each) / low(...other.each),
        ] as const)
      : null
  return { key, is: 'at least', target, figure, range }
}

function atMost(key: string, target: number, mine?: number, other?: number): Target {
  return { key, is: 'at most', target, figure: ratio(mine, other), range: null }
}

function ratio(mine: number | undefined, other: number | undefined): number | null {
  return mine === undefined || other === undefined ? null : mine / other
}
