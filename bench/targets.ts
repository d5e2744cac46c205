// What is promised, and what came out. Nearly all are ratios within the run; a CPU time is one machine's own.
import { PEERS } from './contender.ts'
import { type DrainFigures, type LoadFigures, nameOf, type Results } from './results.ts'
import { EMPTY_SCENE, SCENES } from './scenes.ts'

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
const OURS_PLATFORMATIC = 'aftercommit-platformatic'
const OURS_DELETING = nameOf({ contender: OURS, tuned: true })

/** `node` is the major version that the run was on. */
export function judgeTargets(results: Results, node: number): Target[] {
  return [
    ...speedTargets(results),
    ...platformaticTargets(results, node),
    ...claimTargets(results),
    ...standingTargets(results),
  ]
}

/** How fast we are beside others, and what Postgres pays for it. */
function speedTargets({ loads, drains, overhead }: Results): Target[] {
  const [at16, at64] = [loads['throughput 16'], loads['throughput 64']]
  const [calm, drain] = [loads['latency'], drains['drain']]
  const rate64 = loadRate(at64?.[OURS])
  const drained = drainRate(drain?.[OURS])
  return [
    atLeast(
      'throughput against textbook, 16 concurrent',
      1.2,
      loadRate(at16?.[OURS]),
      loadRate(at16?.['textbook']),
    ),
    atLeast(
      'throughput against dual-write, 64 concurrent',
      0.65,
      rate64,
      loadRate(at64?.['dual-write']),
    ),
    atLeast(
      'throughput against the best peer, 64 concurrent',
      1.8,
      rate64,
      bestPeer(at64, loadRate),
    ),
    atMost(
      'latency p50 against dual-write, 50 a second',
      1.15,
      calm?.[OURS]?.latencyMs.p50,
      calm?.['dual-write']?.latencyMs.p50,
    ),
    atMost(
      'unit of work against the INSERT by hand',
      1.05,
      overhead?.withOutboxMs,
      overhead?.handWrittenMs,
    ),
    atLeast('drain against kafkajs-only', 0.42, drained, drainRate(drain?.['kafkajs-only'])),
    atLeast('drain against the best peer', 1.4, drained, bestPeer(drain, drainRate)),
    cpuOf('Postgres CPU for a drained event, in µs', 42, drain?.[OURS]),
    cpuOf('Postgres CPU for a drained event with retention: 0, in µs', 34, drain?.[OURS_DELETING]),
  ]
}

/** The same with the other Kafka client. Peers stay on kafkajs. From Node 24 on, drains have to be faster. */
function platformaticTargets({ loads, drains }: Results, node: number): Target[] {
  const [at64, drain] = [loads['throughput 64'], drains['drain']]
  const rate64 = loadRate(at64?.[OURS_PLATFORMATIC])
  const drained = drainRate(drain?.[OURS_PLATFORMATIC])
  const since24 = node >= 24
  return [
    atLeast(
      'throughput against dual-write, 64 concurrent, both on @platformatic/kafka',
      0.75,
      rate64,
      loadRate(at64?.['dual-write-platformatic']),
    ),
    atLeast(
      'throughput on @platformatic/kafka against the best peer, 64 concurrent',
      2,
      rate64,
      bestPeer(at64, loadRate),
    ),
    atLeast(
      'drain on @platformatic/kafka against kafkajs-only',
      since24 ? 0.65 : 0.55,
      drained,
      drainRate(drain?.['kafkajs-only']),
    ),
    atLeast(
      'drain on @platformatic/kafka against the best peer',
      since24 ? 2.2 : 1.8,
      drained,
      bestPeer(drain, drainRate),
    ),
  ]
}

/** A claim costs the same, whatever is in its way. */
function claimTargets({ claims }: Results): Target[] {
  return SCENES.filter((scene) => scene !== EMPTY_SCENE).map((scene) => {
    const found = claims.find((one) => one.scene === scene)
    return within(`claim against ${EMPTY_SCENE}: ${scene}`, 2, found?.ratio, found?.ratioEach)
  })
}

/** What was reached earlier, and has to stay. */
function standingTargets(results: Results): Target[] {
  const { loads, drains, history, idleStatementsPerSecond } = results
  const [at64, calm, drain] = [loads['throughput 64'], loads['latency'], drains['drain']]
  const [ours, alone] = [at64?.[OURS], at64?.['postgres-only']]
  const fresh = history.find(({ published }) => published === 0)
  const longest = history.findLast(({ published }) => published > 0)
  return [
    atMost(
      'latency p99 against dual-write, 50 a second',
      1.5,
      calm?.[OURS]?.latencyMs.p99,
      calm?.['dual-write']?.latencyMs.p99,
    ),
    atMost('latency p50 of emitIn(), 50 a second, in ms', 100, calm?.['emit-in']?.latencyMs.p50, 1),
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
      ours && alone ? ours.statementsPerEvent - alone.statementsPerEvent : undefined,
      1,
    ),
    atMost('idle queries per second per process', 0.5, idleStatementsPerSecond ?? undefined, 1),
    atLeast(
      'the default against retention: 0, throughput at 64 concurrent',
      0.8,
      loadRate(ours),
      loadRate(at64?.[OURS_DELETING]),
    ),
    atLeast(
      'the default against retention: 0, drain',
      0.8,
      drainRate(drain?.[OURS]),
      drainRate(drain?.[OURS_DELETING]),
    ),
  ]
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
  const peers = PEERS.flatMap((peer) => [
    rate(of?.[peer]),
    rate(of?.[nameOf({ contender: peer, tuned: true })]),
  ])
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
    (of): { readonly lost: number }[] =>
      [of[OURS], of[OURS_DELETING], of[OURS_PLATFORMATIC]].filter((one) => !!one),
  )
  const lost = [...figures, ...history].reduce((sum, one) => sum + one.lost, 0)
  const failed = failures.some(({ contender }) => {
    return contender === OURS || contender === OURS_PLATFORMATIC
  })
  return lost === 0 && !failed
}

function atLeast(key: string, target: number, mine?: Rated, other?: Rated): Target {
  const figure = ratio(mine?.median, other?.median)
  return { key, is: 'at least', target, figure, range: rangeOf(mine, other) }
}

function rangeOf(mine: Rated | undefined, other: Rated | undefined): Target['range'] {
  if (!mine || !other) return null
  const [low, high] = [Math.min, Math.max]
  return [low(...mine.each) / high(...other.each), high(...mine.each) / low(...other.each)]
}

function atMost(key: string, target: number, mine?: number, other?: number): Target {
  return { key, is: 'at most', target, figure: ratio(mine, other), range: null }
}

/** A figure that is kept by round, and not a quotient of two. */
function within(
  key: string,
  target: number,
  figure?: number,
  each: readonly number[] = [],
): Target {
  const range = each.length > 0 ? ([Math.min(...each), Math.max(...each)] as const) : null
  return { key, is: 'at most', target, figure: figure ?? null, range }
}

function cpuOf(key: string, target: number, figures: DrainFigures | undefined): Target {
  return within(key, target, figures?.postgresCpuUs ?? undefined, figures?.postgresCpuUsEach)
}

function ratio(mine: number | undefined, other: number | undefined): number | null {
  return mine === undefined || other === undefined ? null : mine / other
}
