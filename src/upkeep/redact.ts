// outbox.redact(): erases what published events and dead letters say, page by page. What was redacted before a crash stays
// so, and a second call does the rest.
import { rejectUnknown, requireBoolean } from '../checks/checks.ts'
import { show } from '../checks/duration.ts'
import { requireDates, requireIds, requireTexts } from '../checks/filter-values.ts'
import { OutboxOptionsError } from '../errors.ts'
import { encodePayload } from '../event/payload.ts'
import type { Logger } from '../runtime/logger.ts'
import type { EventFilter } from '../store/outbox/browse-store.ts'
import type { Store } from '../store/outbox/outbox-store.ts'
import type { RedactedPage } from '../store/outbox/redact.ts'
import { requireSelection, selectedBy } from './change-failures.ts'
import { type DoneBy, doneBy } from './done-by.ts'

/** Which events to redact: a filter, or `{ all: true }` for every one. */
export type RedactSelection = Omit<EventFilter, 'status' | 'error'> | { all: true }

export interface RedactDetails extends DoneBy {
  /** The replacement of each payload, as it is: payloads.write() is not called. @default null */
  payload?: unknown
  /** The names of headers to remove. @default none */
  headers?: readonly string[]
  /** Whether to include events that still have to go out. They go out with the replacement. @default false */
  unsent?: boolean
}

export interface RedactResult {
  /** How many events were redacted. */
  readonly redacted: number
  /** How many were selected and left, because they still have to go out. With `unsent`, those that a process holds. */
  readonly left: number
}

export interface RedactParts {
  readonly store: Pick<Store<never>, 'redact'>
  readonly logger: Logger
}

const CALL = 'redact()'
const TEXTS = ['type', 'topic', 'aggregateType', 'aggregateId']
const FILTERS = ['id', ...TEXTS, 'savedSince', 'savedBefore']

export async function redact(
  { store, logger }: RedactParts,
  selection: RedactSelection,
  details: RedactDetails,
): Promise<RedactResult> {
  rejectUnknown(CALL, details, ['payload', 'headers', 'unsent', 'by'])
  const { payload = null, headers = [], unsent = false, ...by } = details
  const who = doneBy(CALL, by)
  const filter = requireSelection<EventFilter>(CALL, selection, FILTERS, 'events')
  const { id, savedSince, savedBefore, ...texts } = filter
  requireIds('id', id)
  requireTexts(texts)
  requireDates({ savedSince, savedBefore })
  const redaction = {
    payload: encodePayload(CALL, payload),
    headers: requireNames(headers),
    unsent: requireBoolean('unsent', unsent),
  }
  let [redacted, left] = [0, 0]
  try {
    for (let after: string | null = null; ; ) {
      const page: RedactedPage = await store.redact(filter, redaction, after)
      redacted += page.redacted
      left += page.left
      after = page.last
      if (after === null) return { redacted, left }
    }
  } finally {
    // Also when a page failed: what was redacted before stays so.
    if (redacted > 0)
      logger.info({ redacted, left, ...who, ...selectedBy(filter) }, 'events redacted')
  }
}

function requireNames(headers: unknown): readonly string[] {
  if (Array.isArray(headers) && headers.every((name) => typeof name === 'string')) return headers
  throw new OutboxOptionsError(`headers must be a list of names, got ${show(headers)}`)
}
