// aftercommit tail: events as they are saved and as their status changes, until it is interrupted.
import { setTimeout as sleep } from 'node:timers/promises'
import { EventBrowser } from '../../upkeep/browse.ts'
import type { EventSummary } from '../../store/outbox/browse-store.ts'
import { duration, wholeNumber } from '../arguments.ts'
import { usageError } from '../cli-error.ts'
import type { AddCommand } from '../command.ts'
import type { Output } from '../output/output.ts'
import { nextSignal } from '../signals.ts'
import { printable } from '../output/table.ts'
import { cut } from '../output/wrap.ts'
import { colourStatus } from './event-row.ts'

interface Options {
  readonly lines: number
  readonly interval: number
  readonly topic?: string
  readonly type?: string
}

const SHORTEST_INTERVAL_MS = 100

export const tailCommand: AddCommand = (program, run) => {
  program
    .command('tail')
    .description('events as they are saved and as their status changes; ends with Ctrl-C')
    .option('--lines <n>', 'how many of the newest to begin with', wholeNumber(0, 1_000), 10)
    .option('--interval <duration>', 'how often it looks', duration, 1_000)
    .option('--topic <name>', 'only for this topic')
    .option('--type <name>', 'only of this event type')
    .action(
      run(async (context, { lines, interval, topic, type }: Options) => {
        if (interval < SHORTEST_INTERVAL_MS) {
          throw usageError(
            '--interval must be at least 100ms, so that it does not load the database',
          )
        }
        const { out } = context
        const { store } = await context.session()
        const browser = new EventBrowser({ store })
        const filter = {
          ...(topic !== undefined && { topic }),
          ...(type !== undefined && { type }),
        }
        const ended = nextSignal(['SIGINT', 'SIGTERM'])
        const tail = browser.tail(filter)
        await tail.begin()
        // What comes between these two looks is in both.
        let known = lines === 0 ? [] : (await browser.list({ ...filter, limit: lines })).events
        if (!out.json) out.line(null, () => out.style('dim', toLine(TITLES, out)))
        if (known.length > 0) print(known.toReversed(), out)
        for (;;) {
          const isEnded = await Promise.race([ended.then(() => true), sleep(interval, false)])
          if (isEnded) return
          const news = (await tail.next()).filter((event) => !known.some(isSameAs(event)))
          known = []
          if (news.length > 0) print(news, out)
        }
      }),
    )
}

function isSameAs({ id, status }: EventSummary): (other: EventSummary) => boolean {
  return (other) => other.id === id && other.status === status
}

const TITLES = ['TIME', 'STATUS', 'ID', 'TYPE', 'TOPIC', 'AGGREGATE']
/** Those after the time. */
const WIDTHS = [11, 36, 16, 12, 16]
const GAP = 2

/** Lines come one by one, so columns have fixed widths. Those that do not fit are left out: `show` has everything. */
function toLine(cells: readonly string[], out: Output): string {
  const widths = [out.clockTime(new Date()).length, ...WIDTHS]
  let end = -GAP
  const fitting = cells.filter((_, n) => (end += widths[n]! + GAP) <= out.width)
  const padded = fitting.map((cell, n) => cell.padEnd(widths[n]!))
  return cut(padded.join(' '.repeat(GAP)).trimEnd(), out.width)
}

function print(events: readonly EventSummary[], out: Output): void {
  for (const event of events) {
    out.line(event, () => {
      const { id, type, topic, aggregateType, aggregateId, status, error } = event
      const about = [type, topic, `${aggregateType} ${aggregateId}`].map(printable)
      const line = toLine([out.clockTime(event.createdAt), status, id, ...about], out)
      const isFailed = error !== null && status !== 'published'
      const below = isFailed ? `\n${cut(`${' '.repeat(10)}${printable(error)}`, out.width)}` : ''
      return `${line.replace(status, colourStatus(status, out))}${below}`
    })
  }
}
