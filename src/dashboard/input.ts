// Reads and checks the input of a request before anything is done. An unknown name is refused with a suggestion.
import { rejectUnknown, requireCount, requireName, requireOneOf } from '../checks/checks.ts'
import { requireIds, requireTexts } from '../checks/filter-values.ts'
import { parseTime } from '../checks/time.ts'
import type { EventStatus } from '../event/event.ts'
import type { FailureFilter } from '../store/outbox/failure-store.ts'
import type { EventListing } from '../upkeep/browse.ts'
import { MOST_IDS, type Selection } from './api.ts'
import { badRequest, RefusedError } from './refusal.ts'

/** More than the ids of a page need. */
const LARGEST_BODY = 256 * 1_024
const LARGEST_PAGE = 200

/** The body as a JSON object with these keys. */
export async function readBody(
  request: Request,
  keys: readonly string[],
): Promise<Record<string, unknown>> {
  const text = await readText(request)
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    throw badRequest('the body is not valid JSON')
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw badRequest('the body must be a JSON object')
  }
  rejectUnknown('the body', body, keys)
  return body as Record<string, unknown>
}

async function readText({ body }: Request): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let size = 0
  for await (const chunk of body ?? []) {
    const bytes = chunk as Uint8Array
    size += bytes.byteLength
    if (size > LARGEST_BODY) {
      throw new RefusedError(413, 'TOO_LARGE', `the body is larger than ${LARGEST_BODY} bytes`)
    }
    text += decoder.decode(bytes, { stream: true })
  }
  return text + decoder.decode()
}

/** The parameters of an address, each at most once. An empty one was not given. */
export function readQuery(url: URL, names: readonly string[]): Readonly<Record<string, string>> {
  const query: Record<string, string> = {}
  rejectUnknown('the address', Object.fromEntries(url.searchParams), names)
  for (const name of names) {
    const [value, ...others] = url.searchParams.getAll(name)
    if (others.length > 0) throw badRequest(`${name} is given more than once`)
    if (value !== undefined && value !== '') query[name] = value
  }
  return query
}

const TEXTS = ['type', 'topic', 'aggregateType', 'aggregateId'] as const
const EVENT_QUERY = ['id', 'status', ...TEXTS, 'error', 'savedSince', 'savedBefore']

export interface EventSearch {
  readonly filter: Omit<EventListing, 'limit' | 'after'>
  readonly limit: number
  readonly after: string | null
}

/** browse.list() checks the values themselves. */
export function readSearch(url: URL): EventSearch {
  const query = readQuery(url, [...EVENT_QUERY, 'order', 'after', 'limit'])
  const { id, status, order, savedSince, savedBefore, after, limit = '50' } = query
  return {
    filter: {
      ...pick(query, [...TEXTS, 'error']),
      ...(id !== undefined && { id }),
      ...(status !== undefined && { status: status.split(',') as EventStatus[] }),
      ...(savedSince !== undefined && { savedSince: toDate('savedSince', savedSince) }),
      ...(savedBefore !== undefined && { savedBefore: toDate('savedBefore', savedBefore) }),
      ...(order !== undefined && {
        order: requireOneOf<string>('order', order, ORDERS) as 'newest',
      }),
    },
    limit: requireCount('limit', Number(limit), LARGEST_PAGE),
    after: after ?? null,
  }
}

const ORDERS = ['newest', 'oldest']
const SELECTION = ['all', 'status', 'id', ...TEXTS, 'error', 'savedSince', 'savedBefore']

/** As a filter of failures that were last tried before `asOf`, so that it selects none that came after a count. */
export function readSelection(given: unknown, asOf: Date): FailureFilter {
  rejectUnknown('selection', given, SELECTION)
  const { status, id, savedSince, savedBefore, error } = given as Selection
  const { all } = given as { all?: unknown }
  const fields = pick(given as Record<string, unknown>, TEXTS)
  requireTexts({ ...fields, error })
  const isFiltered = Object.entries(given as object).some(
    ([name, value]) => name !== 'all' && value !== undefined,
  )
  if (all !== undefined && all !== true) throw badRequest('selection.all must be true')
  if (isFiltered === (all === true)) {
    throw badRequest('selection needs at least one field, or all: true and nothing else')
  }
  return {
    ...(fields as Pick<Selection, (typeof TEXTS)[number]>),
    ...(status !== undefined && {
      status: requireOneOf('status', status, ['failed', 'dead_letter']),
    }),
    ...(id !== undefined && { id: toIds(id) }),
    ...(error !== undefined && { error }),
    ...(savedSince !== undefined && { savedSince: toDate('savedSince', savedSince) }),
    ...(savedBefore !== undefined && { savedBefore: toDate('savedBefore', savedBefore) }),
    failedBefore: asOf,
  }
}

function toIds(id: unknown): readonly string[] {
  if (!Array.isArray(id) || id.length === 0 || id.length > MOST_IDS) {
    throw badRequest(`id must be a list of 1 to ${MOST_IDS} ids`)
  }
  requireIds('id', id)
  return id as string[]
}

/** An ISO 8601 time. */
export function toDate(name: string, text: unknown): Date {
  const date = parseTime(text)
  if (date) return date
  throw badRequest(`${name} must be a time such as 2026-01-31T12:00:00Z`)
}

/** A topic, or null for everything. */
export function toTopic(topic: unknown): string | null {
  return topic === null ? null : requireName('topic', topic)
}

function pick<Name extends string>(
  from: Readonly<Record<string, unknown>>,
  names: readonly Name[],
): { [Field in Name]?: string } {
  const given = names.filter((name) => from[name] !== undefined)
  return Object.fromEntries(given.map((name) => [name, from[name]])) as { [Field in Name]?: string }
}
