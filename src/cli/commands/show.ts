// aftercommit show: everything about one event. Payload and headers only on request, as they hold the application's data.
import { EventBrowser } from '../../upkeep/browse.ts'
import type { EventDetail } from '../../store/outbox/browse-store.ts'
import { eventId } from '../arguments.ts'
import { notFound } from '../cli-error.ts'
import type { AddCommand } from '../command.ts'
import type { Output } from '../output/output.ts'
import { formatPairs, printable } from '../output/table.ts'
import { colourStatus, describeNext, lookAround, type Surroundings } from './event-row.ts'

interface Options {
  readonly payload?: boolean
}

export const showCommand: AddCommand = (program, run) => {
  program
    .command('show')
    .description('everything about one event')
    .argument('<id>', 'the id of the event', eventId)
    .option('--payload', 'also its payload and headers')
    .action(
      run(async (context, { payload: withPayload = false }: Options, id: string) => {
        const { out } = context
        const session = await context.session()
        const event = await new EventBrowser(session).show(id)
        if (!event) {
          throw notFound(
            `there is no event ${id}; it may be past its retention, or in another table`,
          )
        }
        const { payload, headers, ...rest } = event
        const around = await lookAround(session)
        out.document(withPayload ? { ...rest, headers, payload } : rest, () =>
          formatEvent(event, out, around, withPayload),
        )
      }),
    )
}

/** What `aftercommit status` shows in more detail. */
const SEE_STATUS = /^(paused|waits for)/

function formatEvent(
  event: EventDetail,
  out: Output,
  around: Surroundings,
  withPayload: boolean,
): string {
  const { nowMs } = around
  const next = describeNext(event, out, around)
  const behind = event.behind.map(({ id, status }) =>
    // Whether dead letters hold others is a setting of the instances.
    status === 'dead_letter'
      ? `${id} (dead_letter, only with onDeadLetter: 'hold')`
      : `${id} (${status})`,
  )
  return formatPairs(
    {
      id: event.id,
      status: colourStatus(event.status, out),
      type: printable(event.type),
      aggregate: printable(`${event.aggregateType} ${event.aggregateId}`),
      topic: printable(event.topic),
      seq: event.seq,
      lane: event.lane,
      occurred: out.bothTimes(event.occurredAt, nowMs),
      saved: out.bothTimes(event.createdAt, nowMs),
      ...(event.deliverAt && { 'scheduled for': out.bothTimes(event.deliverAt, nowMs) }),
      published: out.bothTimes(event.publishedAt, nowMs),
      attempts: `${event.attempts} of ${event.maxAttempts}`,
      'last attempt': out.bothTimes(event.lastAttemptAt, nowMs),
      next: SEE_STATUS.test(next) ? `${next}; see aftercommit status` : next,
      'waits for': behind.join(', ') || '-',
      worker: event.isLeased ? printable(event.workerId ?? '-') : '-',
      error: printable(event.error ?? '-'),
      ...(withPayload
        ? { headers: printable(JSON.stringify(event.headers)), payload: printable(event.payload) }
        : { payload: 'hidden; --payload shows it and the headers' }),
    },
    out.width,
  )
}
