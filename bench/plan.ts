// What is run, against whom, and for how long. Contenders take turns within each round, so that whatever the
// machine does meanwhile meets them all. The time goes where targets are decided; the rest has one short turn.
import type { BenchArguments, WorkloadName } from './arguments.ts'
import { type ContenderName, PEERS } from './contender.ts'
import { type Load, SHORT_WARM_UP } from './job.ts'
import { secondsOfDrain, secondsOfLoad } from './pace.ts'
import {
  claimSteps,
  drainStep,
  historySteps,
  idleStep,
  inTurns,
  type Leg,
  LoadTurns,
  overheadStep,
  sessionSteps,
  type Step,
  warmUpStep,
} from './steps.ts'
import { OURS, type Variant } from './turn.ts'

const byDefault = (contender: ContenderName): Variant => ({ contender, tuned: false })
const tuned = (contender: ContenderName): Variant => ({ contender, tuned: true })

const DUAL_WRITE = byDefault('dual-write')
const TEXTBOOK = byDefault('textbook')
const BARE_IDEA = byDefault('bare-idea')
const EMIT_IN = byDefault('emit-in')
const POSTGRES_ONLY = byDefault('postgres-only')
const KAFKAJS_ONLY = byDefault('kafkajs-only')
const PLATFORMATIC_ONLY = byDefault('platformatic-only')
const OURS_DELETING = tuned('aftercommit')
/** The same on the other Kafka client. */
const OURS_PLATFORMATIC = byDefault('aftercommit-platformatic')
const DUAL_WRITE_PLATFORMATIC = byDefault('dual-write-platformatic')
const PLATFORMATIC = [OURS_PLATFORMATIC, DUAL_WRITE_PLATFORMATIC]
const TUNED_PEERS = PEERS.map(tuned)
/** The best peer at 64, and the best one in a drain. A run has time for many rounds of these, and one of the others. */
const [FASTEST_PEER, DRAINING_PEER] = [tuned('graphile-worker'), tuned('pg-boss')]

/** Who decides the targets about throughput. */
const DECIDED = [OURS, OURS_DELETING, DUAL_WRITE, ...PLATFORMATIC, FASTEST_PEER]

/** For peers by default, about which there is no target. */
const SHORT = { seconds: 3, warmUp: SHORT_WARM_UP }

const ONE_EVENT = { eventsPerUnit: 1, payloadBytes: 1_000 } as const

export function makePlan({ quick, only }: BenchArguments): Step[] {
  const rounds = quick ? 1 : 3
  const has = (name: WorkloadName) => only.includes(name)
  const warmUp: Load = { ...ONE_EVENT, seconds: quick ? 3 : 10, concurrency: 64 }
  const warm = warmUpStep(
    async (arena) => {
      await arena.load(DUAL_WRITE, warmUp)
      await arena.endSession(DUAL_WRITE, () => {})
    },
    secondsOfLoad(DUAL_WRITE, warmUp, 'first'),
  )
  return [
    warm,
    ...sessionsOf(quick, has),
    ...(has('overhead') ? inTurns([overheadStep(quick ? 150 : 400)], rounds) : []),
    ...(has('drain') ? drainSteps(quick) : []),
    ...(has('claims') ? claimSteps(quick ? 50_000 : 1_000_000, 50, rounds) : []),
    ...(has('history') ? historySteps([0, 3_000_000], 30_000, rounds) : []),
    ...(has('idle') ? [idleStep(30)] : []),
  ]
}

/** All loads. A process does all that is asked of its contender, and those that decide targets have two of them. */
function sessionsOf(quick: boolean, has: (name: WorkloadName) => boolean): Step[] {
  const seconds = quick ? 3 : 5
  const at64: Load = { ...ONE_EVENT, seconds, concurrency: 64 }
  const at16: Load = { ...at64, concurrency: 16 }
  const calm: Load = { ...ONE_EVENT, seconds: quick ? 3 : 10, concurrency: 1, perSecond: 50 }
  const short: Load = { ...at16, seconds: 3 }
  const leg = (workload: string, load: Load, variants: readonly Variant[], rounds = 1): Leg[] => {
    const name = workload.split(' ')[0] as WorkloadName
    return has(name) ? [{ workload, load, variants, rounds }] : []
  }
  const turns = new LoadTurns()
  const sessions = (...legs: readonly Leg[][]) => sessionSteps(legs.flat(), turns)
  if (quick) {
    const both = [OURS, DUAL_WRITE]
    return sessions(leg('throughput 64', at64, DECIDED), leg('latency', calm, both))
  }
  const others = [BARE_IDEA, POSTGRES_ONLY, EMIT_IN, ...without(TUNED_PEERS, FASTEST_PEER)]
  const one = [OURS, DUAL_WRITE, FASTEST_PEER]
  return [
    // Most targets are about these: a slow spell of the machine must not be the middle of three.
    ...sessions(
      leg('throughput 64', at64, DECIDED, 3),
      leg('latency', calm, [OURS, DUAL_WRITE], 2),
    ),
    ...sessions(
      leg('throughput 64', at64, DECIDED, 2),
      leg('throughput 64', at64, [TEXTBOOK]),
      leg('throughput 16', at16, [OURS, TEXTBOOK], 3),
      leg('throughput 16', at16, [DUAL_WRITE, ...PLATFORMATIC, FASTEST_PEER]),
      leg('latency', calm, [OURS, DUAL_WRITE]),
      leg('latency', { ...calm, seconds: 5 }, [...PLATFORMATIC, TEXTBOOK, FASTEST_PEER]),
      leg('hotkey', { ...short, keys: 1 }, one),
      leg('fanout', { ...short, eventsPerUnit: 100, payloadBytes: 100 }, one),
      leg('payload 100', { ...short, payloadBytes: 100 }, one),
      leg('payload 50000', { ...short, payloadBytes: 50_000 }, one),
    ),
    // These poll while they have nothing to do, so none of them is there while another one is measured.
    ...others.flatMap((variant) => [
      ...sessions(
        leg('throughput 64', at64, variant === EMIT_IN ? [] : [variant]),
        leg('throughput 16', at16, isFast(variant) ? [variant] : []),
        leg('latency', { ...calm, seconds: 5 }, isMark(variant) ? [] : [variant]),
      ),
    ]),
    ...PEERS.map(byDefault).flatMap((variant) => [
      ...sessions(leg('throughput by default', { ...at64, ...SHORT }, [variant])),
    ]),
  ]
}

function drainSteps(quick: boolean): Step[] {
  // The first 20,000 are the warm-up.
  const all = { rows: quick ? 60_000 : 80_000, payloadBytes: 1_000, limitSeconds: quick ? 10 : 30 }
  // It is several times as fast, and has nothing to write first.
  const fromMemory = { ...all, rows: 1.5 * all.rows }
  const warmUp = { ...all, rows: 40_000 }
  const decided = [
    ...[OURS, OURS_DELETING, OURS_PLATFORMATIC, DRAINING_PEER].map((variant) => {
      return drainStep('drain', variant, all)
    }),
    drainStep('drain', KAFKAJS_ONLY, fromMemory),
  ]
  const others = [
    drainStep('drain', PLATFORMATIC_ONLY, fromMemory),
    ...[TEXTBOOK, ...without(TUNED_PEERS, DRAINING_PEER)].map((variant) => {
      return drainStep('drain', variant, { ...all, limitSeconds: 8, rows: rowsFor(variant) })
    }),
    drainStep('drain with two', OURS, { ...all, instances: 2 }),
    // Few enough to be done in time: by several that send the same, what was lost is only known at the end.
    ...[OURS, tuned('nest-native-messaging')].map((variant) => {
      return drainStep('drain with four', variant, { ...all, rows: 4_000, instances: 4 })
    }),
  ]
  return [
    // Large requests take another way through the broker than those of a load.
    warmUpStep(
      (arena) => arena.drain(KAFKAJS_ONLY, warmUp, () => {}),
      secondsOfDrain(KAFKAJS_ONLY, warmUp),
    ),
    ...inTurns(decided, quick ? 1 : 3),
    ...(quick ? [] : others),
  ]
}

/** A peer that comes near us at 16. */
function isFast({ contender }: Variant): boolean {
  return contender === 'pg-transactional-outbox-wal'
}

/** It has no latency, or none that is worth the time. */
function isMark(variant: Variant): boolean {
  return variant === POSTGRES_ONLY || variant === BARE_IDEA
}

function without(variants: readonly Variant[], left: Variant): Variant[] {
  return variants.filter(({ contender }) => contender !== left.contender)
}

/** Enough for the time that it is given; more would only have to be written first. */
function rowsFor({ contender }: Variant): number {
  if (contender === 'graphile-worker') return 40_000
  const isSlow = contender === 'textbook' || contender === 'pg-transactional-outbox-polling'
  return isSlow ? 2_000 : 10_000
}
