// Which failures retry and discard are about: ids, a group or a filter, and how many events that is.
import { createHash } from 'node:crypto'
import type { Command } from 'commander'
import type { FailureFilter, FailureGroup, FailureStatus } from '../store/outbox/failure-store.ts'
import type { Count } from '../store/outbox/outbox-store.ts'
import { FailureDesk } from '../upkeep/failures.ts'
import { eventIds } from './arguments.ts'
import { notFound, usageError } from './cli-error.ts'
import type { Session } from './context.ts'
import { fieldsOf, type FilterOptions, timesOf, withFilter } from './event-filter.ts'
import { silentParts } from './silent-parts.ts'

export interface SelectionOptions extends FilterOptions {
  readonly group?: string
  readonly all?: boolean
  readonly yes?: boolean
}

export interface Selected {
  readonly filter: FailureFilter & { status: FailureStatus }
  readonly count: Count
}

/** As many groups are searched for a key. */
const MOST_GROUPS = 1_000

export function withSelection(command: Command): Command {
  command
    .argument('[ids...]', 'ids of events', eventIds)
    .option('--group <key>', 'a group, by its key in aftercommit groups')
  return withFilter(command, 'tried last')
    .option('--all', 'all of them')
    .option('--yes', 'do not ask')
}

/** Short, and the same as long as the group is. */
export function groupKey({ status, type, topic, error }: FailureGroup): string {
  const text = JSON.stringify([status, type, topic, error])
  return createHash('sha256').update(text).digest('hex').slice(0, 10)
}

export async function select(
  session: Session,
  ids: readonly string[],
  options: SelectionOptions,
  status: FailureStatus,
): Promise<Selected> {
  const { group, all } = options
  const { since, before } = await timesOf(options, session)
  const fields = {
    ...(ids.length > 0 && { id: ids }),
    ...fieldsOf(options),
    ...(since !== undefined && { failedSince: since }),
  }
  const isFiltered = Object.keys(fields).length > 0 || before !== undefined
  if ([group !== undefined, isFiltered, all === true].filter(Boolean).length !== 1) {
    throw usageError('name the events: by ids or a filter, by --group, or --all for all of them')
  }
  // What fails from here on was not counted, so it is not changed either, however long the person takes to answer.
  const now = new Date(await session.now())
  if (group !== undefined) return await selectGroup(session, group, now)
  const failedBefore = before !== undefined && before < now ? before : now
  const filter = { ...fields, status, failedBefore }
  return { filter, count: await new FailureDesk(silentParts(session.store)).count(filter) }
}

async function selectGroup({ store }: Session, key: string, failedBefore: Date): Promise<Selected> {
  const groups = await new FailureDesk(silentParts(store)).groups({ limit: MOST_GROUPS })
  const found = groups.find((group) => groupKey(group) === key)
  if (!found) {
    throw notFound(
      `there is no group ${key}; it may have been retried or discarded; aftercommit groups lists the current groups`,
    )
  }
  const { status, type, topic, error, count, exact } = found
  return { filter: { status, type, topic, error, failedBefore }, count: { count, exact } }
}

/** Names the selected events that were not changed; the others were. */
export function requireAll(
  ids: readonly string[],
  changed: number,
  done: string,
  why: string,
): void {
  const missing = new Set(ids).size - changed
  if (missing <= 0) return
  const events = ids.length === 1 ? 'the event was' : `${missing} of the events were`
  throw notFound(`${events} not ${done}: ${why}`)
}
