// What is run, against whom, and for how long. Contenders take turns within each round, so that whatever the
// machine does meanwhile meets them all.
import { OURS, type Variant } from './arena.ts'
import type { BenchArguments } from './arguments.ts'
import { type ContenderName, PEERS } from './contender.ts'
import type { Load } from './job.ts'
import {
  claimSteps,
  drainStep,
  historySteps,
  idleStep,
  inTurns,
  loadSteps,
  overheadStep,
  type Step,
  warmUpStep,
} from './steps.ts'

const byDefault = (contender: ContenderName): Variant => ({ contender, tuned: false })
const tuned = (contender: ContenderName): Variant => ({ contender, tuned: true })

const DUAL_WRITE = byDefault('dual-write')
const TEXTBOOK = byDefault('textbook')
const BARE_IDEA = byDefault('bare-idea')
const EMIT_IN = byDefault('emit-in')
const POSTGRES_ONLY = byDefault('postgres-only')
const KAFKAJS_ONLY = byDefault('kafkajs-only')
const OURS_DELETING = tuned('aftercommit')
const TUNED_PEERS = PEERS.map(tuned)
/** The best peer at 64, and the best one in a drain. A run has time for many rounds of these, and few of the others. */
const [FASTEST_PEER, DRAINING_PEER] = [tuned('graphile-worker'), tuned('pg-boss')]
const MARKS = [DUAL_WRITE, TEXTBOOK, BARE_IDEA, POSTGRES_ONLY]

const ONE_EVENT = { kind: 'load', eventsPerUnit: 1, payloadBytes: 1_000 } as const

export function makePlan({ quick, only }: BenchArguments): Step[] {
  const rounds = quick ? 1 : 3
  const seconds = quick ? 3 : 5
  const warmUp: Load = { ...ONE_EVENT, seconds: quick ? 3 : 20, concurrency: 64 }
  const steps: Step[] = [warmUpStep((arena) => arena.load(DUAL_WRITE, warmUp), warmUp.seconds)]
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
    if (quick) {
      const field = [OURS, OURS_DELETING, DUAL_WRITE, FASTEST_PEER, DRAINING_PEER]
      loads('throughput 64', field, load(64))
    } else {
      loads('throughput 16', [OURS, ...MARKS, ...TUNED_PEERS.filter(isFast)], load(16))
      // Most targets are about these: a slow spell of the machine must not be the middle of three.
      loads('throughput 64', [OURS, OURS_DELETING, ...MARKS, FASTEST_PEER], load(64), { times: 5 })
      loads('throughput 64', without(TUNED_PEERS, FASTEST_PEER), load(64))
      loads('throughput 64', PEERS.map(byDefault), load(64), { times: 1 })
    }
  }
  if (has('latency')) {
    const load: Load = { ...ONE_EVENT, seconds: quick ? 3 : 10, concurrency: 1, perSecond: 50 }
    loads('latency', [OURS, DUAL_WRITE, ...(quick ? [] : [EMIT_IN])], load, { paced: true })
    if (!quick) loads('latency', [TEXTBOOK, ...TUNED_PEERS], load, { paced: true, times: 1 })
  }
  if (has('overhead')) steps.push(...inTurns([overheadStep(quick ? 150 : 500)], rounds))
  if (has('drain')) {
    // The first 20,000 are the warm-up.
    const rows = quick ? 60_000 : 120_000
    const limitSeconds = quick ? 10 : 60
    const all = { rows, payloadBytes: 1_000, limitSeconds }
    const some = { payloadBytes: 1_000, limitSeconds: 15 }
    // Few enough to be done in time: by several that send the same, what was lost is only known at the end.
    const forFour = { rows: 4_000, payloadBytes: 1_000, limitSeconds: 60, instances: 4 }
    const ofPeer = (variant: Variant) =>
      drainStep('drain', variant, { ...some, rows: quick ? rows : rowsFor(variant.contender) })
    const round = [
      ...[OURS, OURS_DELETING, KAFKAJS_ONLY].map((variant) => drainStep('drain', variant, all)),
      ofPeer(DRAINING_PEER),
    ]
    const others = [
      ...[TEXTBOOK, ...without(TUNED_PEERS, DRAINING_PEER)].map(ofPeer),
      drainStep('drain with two', OURS, { ...all, instances: 2 }),
      ...[OURS, tuned('nest-native-messaging')].map((variant) =>
        drainStep('drain with four', variant, forFour),
      ),
    ]
    // Large requests take another way through the broker than those of a load.
    const warmRows = { ...all, rows: 40_000 }
    steps.push(warmUpStep((arena) => arena.drain(KAFKAJS_ONLY, warmRows), 2))
    steps.push(...inTurns(round, rounds), ...(quick ? [] : others))
  }
  if (has('claims')) steps.push(...claimSteps(quick ? 50_000 : 1_000_000, 50, rounds))
  if (has('history')) steps.push(...historySteps([0, 1_000_000, 10_000_000], 50_000, rounds))
  const field = [OURS, DUAL_WRITE, tuned('graphile-worker')]
  const load: Load = { ...ONE_EVENT, seconds, concurrency: 16 }
  const once = { times: 1 }
  if (has('hotkey')) loads('hotkey', field, { ...load, keys: 1 }, once)
  if (has('fanout'))
    loads('fanout', field, { ...load, eventsPerUnit: 100, payloadBytes: 100 }, once)
  if (has('payload')) {
    for (const payloadBytes of [100, 50_000]) {
      loads(`payload ${payloadBytes}`, field, { ...load, payloadBytes }, once)
    }
  }
  if (has('idle')) steps.push(idleStep(60))
  return steps
}

/** The peers that come near us at 16. */
function isFast({ contender }: Variant): boolean {
  return contender === 'graphile-worker' || contender === 'pg-transactional-outbox-wal'
}

function without(variants: readonly Variant[], left: Variant): Variant[] {
  return variants.filter(({ contender }) => contender !== left.contender)
}

/** Enough for the time that it is given; more would only have to be written first. */
function rowsFor(peer: ContenderName): number {
  if (peer === 'pg-boss') return 120_000
  return peer === 'graphile-worker' ? 50_000 : 10_000
}
