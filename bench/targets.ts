// What is promised, and what came out: each a ratio within the run.
import { PEERS } from './contender.ts'
import type { Results } from './results.ts'

export interface Target {
  readonly key: string
  readonly is: 'at least' | 'at most'
  readonly target: number
  /** null: not part of this run. */
  readonly figure: number | null
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
    atLeast('throughput against dual-write, 64 concurrent', 1, ours?.perSecond, dual?.perSecond),
    atLeast(
      'throughput against the best peer, 64 concurrent',
      3,
      ours?.perSecond,
      bestPeer(busy, ({ perSecond }) => perSecond),
    ),
    ...latency('50 a second', [1.2, 1.5], calm),
    ...latency('64 concurrent', [0.3, 0.5], busy),
    atLeast(
      'throughput against postgres-only, 64 concurrent',
      0.6,
      ours?.perSecond,
      busy?.['postgres-only']?.perSecond,
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
      drain?.[OURS]?.rowsPerSecond,
      drain?.['kafkajs-only']?.rowsPerSecond,
    ),
    atLeast(
      'drain against the best peer',
      5,
      drain?.[OURS]?.rowsPerSecond,
      bestPeer(drain, ({ rowsPerSecond }) => rowsPerSecond),
    ),
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
      ours?.perSecond,
      busy?.[`${OURS} (tuned)`]?.perSecond,
    ),
    atLeast(
      'default settings against tuned ones, drain',
      0.8,
      drain?.[OURS]?.rowsPerSecond,
      drain?.[`${OURS} (tuned)`]?.rowsPerSecond,
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

function bestPeer<T>(of: Record<string, T> | undefined, figure: (one: T) => number) {
  const peers = PEERS.flatMap((peer) => [of?.[peer], of?.[`${peer} (tuned)`]])
  const figures = peers.filter((one) => one !== undefined).map(figure)
  return figures.length > 0 ? Math.max(...figures) : undefined
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

function atLeast(key: string, target: number, mine?: number, other?: number): Target {
  return { key, is: 'at least', target, figure: ratio(mine, other) }
}

function atMost(key: string, target: number, mine?: number, other?: number): Target {
  return { key, is: 'at most', target, figure: ratio(mine, other) }
}

function ratio(mine: number | undefined, other: number | undefined): number | null {
  return mine === undefined || other === undefined ? null : mine / other
}
