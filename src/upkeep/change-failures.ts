// What retrying and discarding have in common, for outbox.deadLetters and outbox.failures: which failures are meant, and
// the change itself, page by page. What was changed before a crash stays changed.
import { rejectUnknown } from '../checks/checks.ts'
import { show } from '../checks/duration.ts'
import { requireIds, requireTexts } from '../checks/filter-values.ts'
import { OutboxOptionsError } from '../errors.ts'
import type { Bell } from '../runtime/bell.ts'
import type { Logger } from '../runtime/logger.ts'
import type {
  FailureFields,
  FailuresChanged,
  FailuresOfKind,
  FailureStatus,
  FailureStore,
} from '../store/outbox/failure-store.ts'

export interface FailureParts {
  readonly store: { readonly failures: FailureStore }
  readonly logger: Logger
  /** Rung when events may be sent again, or no longer hold others back. */
  readonly bell: Bell
}

type Act = 'retry' | 'discard'

export const FAILURE_FIELDS = ['id', 'type', 'topic', 'aggregateType', 'aggregateId', 'error']

const PAGE = 1_000
/** More are only counted in the log. */
const MOST_IDS = 10

const DONE: Record<Act, Record<FailureStatus, string>> = {
  retry: {
    failed: 'failed events made due now',
    dead_letter: 'dead letters reset for retry',
  },
  discard: { failed: 'failed events discarded', dead_letter: 'dead letters discarded' },
}

/** Returns how many were changed. */
export async function changeFailures(
  { store, logger, bell }: FailureParts,
  act: Act,
  filter: FailuresOfKind,
  who: { readonly by?: string },
): Promise<number> {
  let count = 0
  try {
    // From the oldest to the newest, so that an event that fails again meanwhile is not changed twice.
    for (let afterSeq: number | null = 0; afterSeq !== null; ) {
      const changed: FailuresChanged = await store.failures[act](filter, { limit: PAGE, afterSeq })
      count += changed.count
      afterSeq = changed.lastSeq
    }
    return count
  } finally {
    // Also when a page failed: what was changed before stays changed.
    if (count > 0) {
      logger.info({ count, ...who, selected: selectedBy(filter) }, DONE[act][filter.status])
    }
    bell.ring()
  }
}

interface SelectedById {
  readonly id?: string | readonly string[]
}

/** The selection, for the log. Many ids would flood it. */
export function selectedBy({ id, ...filter }: SelectedById): object {
  const ids = id === undefined ? [] : [id].flat()
  if (ids.length === 0) return filter
  return { ...filter, ...(ids.length <= MOST_IDS ? { id: ids } : { ids: ids.length }) }
}

/** What was selected, without `all`. An empty filter is most often a variable that was undefined, so it selects nothing. */
export function requireSelection<TFilter extends object>(
  owner: string,
  selection: TFilter | { all: true },
  fields: readonly string[],
  what: string,
): TFilter {
  rejectUnknown(owner, selection, [...fields, 'all'])
  const { all, ...filter } = selection as TFilter & { all?: unknown }
  const given = Object.values(filter).some((value) => value !== undefined)
  if (all !== undefined && all !== true) {
    throw new OutboxOptionsError(`${owner}: all must be true, got ${show(all)}`)
  }
  if (given && all === true) {
    throw new OutboxOptionsError(
      `${owner}: all: true and a filter contradict each other; remove one`,
    )
  }
  if (!given && all !== true) {
    const remedy = `select by ${fields.join(', ')}, or pass { all: true } for all ${what}`
    throw new OutboxOptionsError(`${owner} needs a filter: ${remedy}`)
  }
  return filter as unknown as TFilter
}

export function checkFields({ id, ...texts }: FailureFields): void {
  requireIds('id', id)
  requireTexts(texts)
}
