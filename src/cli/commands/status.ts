// aftercommit status: what the table holds, what is paused, how many instances run; exit code 3 if something is wrong.
import type { Instance, Pause } from '../../store/outbox/control-store.ts'
import type { Count, TableStats } from '../../store/outbox/outbox-store.ts'
import type { CdcFound } from '../../store/outbox/cdc/look.ts'
import type { TableName } from '../../store/table-name.ts'
import { formatAge } from '../../upkeep/age.ts'
import { findBehind, findUnprepared, MOST_SLOT_BYTES } from '../../upkeep/cdc.ts'
import { formatBytes } from '../../upkeep/doctor/bytes.ts'
import { LATE_MS } from '../../upkeep/late.ts'
import {
  describeUnreached,
  findUnreached,
  splitBySeen,
  type Unreached,
} from '../../upkeep/seen-instances.ts'
import { duration, wholeNumber } from '../arguments.ts'
import type { AddCommand } from '../command.ts'
import { EXIT } from '../exit-codes.ts'
import { countEvents } from '../output/confirm.ts'
import { formatPairs, printable } from '../output/table.ts'
import { wrap } from '../output/wrap.ts'

interface Limits {
  readonly maxPending: number
  readonly maxLag: number
  readonly maxDead: number
}

const MOST = 2 ** 30

/** Beats are ten seconds apart, and one may take a moment. */
const BEAT_DUE_MS = 12_000

export const statusCommand: AddCommand = (program, run) => {
  program
    .command('status')
    .description('what the table holds, what is paused, how many instances run')
    .option(
      '--max-pending <n>',
      'how many unsent events are acceptable',
      wholeNumber(0, MOST),
      1_000,
    )
    .option('--max-lag <duration>', 'how old the oldest unsent event may be', duration, LATE_MS)
    .option('--max-dead <n>', 'how many dead letters are acceptable', wholeNumber(0, MOST), 0)
    .action(
      run(async (context, limits: Limits) => {
        const { out } = context
        const { store, now, table } = await context.session()
        const [stats, newest, pauses, instances, cdc, nowMs] = await Promise.all([
          store.stats(),
          store.browse.list({}, { limit: 1, after: null, order: 'newest' }),
          store.control.pauses(),
          store.control.instances(),
          store.cdc(),
          now(),
        ])
        const [running, unseen] = splitBySeen(instances)
        const newestAt = newest.events[0]?.createdAt ?? null
        const circuits = findUnreached(running, stats.topics)
        const isCdc = running.some(({ settings }) => settings['relay'] === 'cdc')
        const troubles = [
          ...findTroubles(stats, limits),
          ...(isCdc ? findCdcTroubles(cdc, table) : []),
          ...findUnattended(stats, running),
          ...circuits.filter(isWaitedFor).map((one) => describeUnreached(one, running.length)),
        ]
        const over = circuits.filter((one) => !isWaitedFor(one))
        const ok = troubles.length === 0
        const found = {
          ok,
          troubles,
          ...stats,
          newestAt,
          pauses,
          circuits,
          instances: { running: running.length, unseen: unseen.length },
          ...(isCdc && { cdc: { name: cdc.names.slot, slot: cdc.slot } }),
        }
        out.document(found, () =>
          [
            formatPairs(
              {
                ...describe(stats),
                ...(isCdc && { relay: describeConnector(cdc) }),
                'newest event': newestAt === null ? '-' : `saved ${out.time(newestAt, nowMs)}`,
                instances: describeInstances(running, unseen),
                paused:
                  pauses
                    .map((pause) => describePause(pause, out.time(pause.since, nowMs)))
                    .join('; ') || 'nothing',
              },
              out.width,
            ),
            ...troubles.map((trouble) =>
              out.style('red', `! ${wrap(printable(trouble), out.width, 2)}`),
            ),
            ...over.map((one) =>
              wrap(printable(describeUnreached(one, running.length)), out.width, 0),
            ),
          ].join('\n'),
        )
        return ok ? EXIT.fine : EXIT.trouble
      }),
    )
}

function isWaitedFor(circuit: Unreached): boolean {
  return circuit.isWaitedFor
}

function describe(stats: TableStats): Record<string, string | number> {
  const { pending, scheduled, dead, published, due, retrying, held, lagMs } = stats
  const parts = [`${due} due`, `${retrying} failed before`, `${held} behind a failed one`]
  return {
    unsent: `${showCount(pending)} (${parts.join(', ')})`,
    scheduled: `${showCount(scheduled)} not due yet`,
    'oldest unsent': lagMs === null ? '-' : `${formatAge(lagMs)} old`,
    'dead letters': showCount(dead),
    published: `${showCount(published)} still in the table`,
    latency: describeLatency(stats),
  }
}

/** What the connector has sent is in Kafka alone; how far it is behind, the server knows. */
function describeConnector({ slot, names }: CdcFound): string {
  if (slot === null) return 'Kafka Connect, without a replication slot'
  const state = slot.isActive ? 'reads' : 'does not read'
  return `Kafka Connect ${state} the slot ${names.slot}, ${formatBytes(slot.unreadBytes)} behind`
}

function findCdcTroubles(found: CdcFound, table: TableName): string[] {
  const problems = [...findUnprepared(found, table), ...findBehind(found, MOST_SLOT_BYTES)]
  return problems.map(({ message, remedy }) => `${message}; ${remedy}`)
}

/** A process that was killed counts as running for a minute: without a beat, since when. */
function describeInstances(running: readonly Instance[], unseen: readonly Instance[]): string {
  const longestMs = Math.max(0, ...running.map(({ seenMsAgo }) => seenMsAgo))
  const one = running.length > 1 ? 'one ' : ''
  const late = longestMs > BEAT_DUE_MS ? ` (${one}last seen ${formatAge(longestMs)} ago)` : ''
  const lost = unseen.length > 0 ? `, ${unseen.length} not seen lately` : ''
  return `${running.length} running${late}${lost}`
}

/** Of the type that is slowest. */
function describeLatency({ latency }: TableStats): string {
  const [slowest] = Object.entries(latency).toSorted(([, a], [, b]) => b.p95Ms - a.p95Ms)
  if (!slowest) return '-'
  const [type, { medianMs, p95Ms }] = slowest
  return `median ${formatAge(medianMs)}, p95 ${formatAge(p95Ms)} (${printable(type)}, the slowest type)`
}

function showCount({ count, exact }: Count): string {
  return exact ? String(count) : `at least ${count}`
}

function describePause({ topic, by, reason }: Pause, since: string): string {
  const what = topic === null ? 'everything' : `topic ${topic}`
  const about = `${by === null ? '' : ` by ${by}`}${reason === null ? '' : `: ${reason}`}`
  return printable(`${what} (${since}${about})`)
}

function findTroubles({ pending, lagMs, dead }: TableStats, limits: Limits): string[] {
  const troubles: string[] = []
  if (pending.count > limits.maxPending) {
    troubles.push(`more than ${limits.maxPending} events are unsent`)
  }
  if (lagMs !== null && lagMs > limits.maxLag) {
    troubles.push(`the oldest unsent event has waited for ${formatAge(lagMs)}`)
  }
  if (dead.count > limits.maxDead) {
    troubles.push(`${countEvents(dead, 'dead letter')}; see aftercommit groups`)
  }
  return troubles
}

/** Events that no running instance will send. */
function findUnattended({ pending, due }: TableStats, running: readonly Instance[]): string[] {
  if (pending.count === 0) return []
  if (running.length === 0) {
    return [
      'events wait, and no instance runs; start one, or aftercommit relay with your publishers, handlers included',
    ]
  }
  if (due === 0 || running.some(({ poller }) => poller)) return []
  const events = due === 1 ? '1 event is' : `${due} events are`
  return [
    `${events} due, and no running instance runs the fallback; start aftercommit relay with your publishers, handlers included`,
  ]
}
