// aftercommit list: events, newest first, one page at a time.
import { Option } from 'commander'
import { EventBrowser, type EventListing } from '../../upkeep/browse.ts'
import { EVENT_STATUSES } from '../../event/event.ts'
import { eventId, wholeNumber } from '../arguments.ts'
import type { AddCommand } from '../command.ts'
import type { Session } from '../context.ts'
import { fieldsOf, type FilterOptions, timesOf, withFilter } from '../event-filter.ts'
import { formatTable } from '../output/table.ts'
import { lookAround, toCells } from './event-row.ts'

interface Options extends FilterOptions {
  readonly status?: EventListing['status']
  readonly limit: number
  readonly after?: string
  readonly oldest?: boolean
}

export const listCommand: AddCommand = (program, run) => {
  const command = program
    .command('list')
    .description('events, the newest first')
    .addOption(new Option('--status <status>', 'only of this status').choices(EVENT_STATUSES))
  withFilter(command, 'emitted')
    .option('--limit <n>', 'how many', wholeNumber(1, 1_000), 50)
    .option('--after <id>', 'go on after this event, the last one of the page before', eventId)
    .option('--oldest', 'the oldest first')
    .action(
      run(async (context, options: Options) => {
        const { out } = context
        const session = await context.session()
        const page = await new EventBrowser(session).list(await toListing(session, options))
        const { events, next } = page
        const around = await lookAround(session)
        out.document(page, () =>
          events.length === 0
            ? 'no events'
            : formatTable(
                events.map((event) => toCells(event, out, around)),
                out,
              ),
        )
        if (next !== null && !out.json) out.note(`there may be more: --after ${next}`)
      }),
    )
}

async function toListing(session: Session, options: Options): Promise<EventListing> {
  const { status } = options
  const { since, before } = await timesOf(options, session)
  return {
    limit: options.limit,
    order: options.oldest ? 'oldest' : 'newest',
    ...(options.after !== undefined && { after: options.after }),
    ...(status !== undefined && { status }),
    ...fieldsOf(options),
    ...(since !== undefined && { savedSince: since }),
    ...(before !== undefined && { savedBefore: before }),
  }
}
