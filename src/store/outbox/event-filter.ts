// Which events a person wants, as conditions on a table with the alias o.
import { sql, type SQL } from '../../drivers/sql.ts'
import type { EventStatus } from '../../event/event.ts'
import type { EventFilter, PageRequest } from './browse-store.ts'
import { isError } from './boiled-error.ts'
import { encodeArray } from './rows.ts'

/** By id: what the primary key finds, and what selects partitions. A UUIDv7 begins with its time. */
export function idsOf(filter: EventFilter, { after, order }: PageRequest): SQL {
  const { id } = filter
  const conditions = [sql`true`, ...savedWithin(filter)]
  if (id !== undefined) {
    const ids = encodeArray(typeof id === 'string' ? [id] : id)
    conditions.push(sql`o.id = any (${ids}::text::uuid[])`)
  }
  if (after !== null) {
    const isAfter = order === 'newest' ? sql`o.id <` : sql`o.id >`
    conditions.push(sql`${isAfter} ${after}::text::uuid`)
  }
  return sql.join(conditions, sql` and `)
}

/** By the time in the id. */
export function savedWithin({
  savedSince,
  savedBefore,
}: Pick<EventFilter, 'savedSince' | 'savedBefore'>): SQL[] {
  const conditions: SQL[] = []
  if (savedSince) conditions.push(sql`o.id >= ${firstIdOf(savedSince)}::text::uuid`)
  if (savedBefore) conditions.push(sql`o.id < ${firstIdOf(savedBefore)}::text::uuid`)
  return conditions
}

/** By everything else. */
export function fieldsOf(filter: EventFilter): SQL {
  const { type, topic, aggregateType, aggregateId, error } = filter
  const statuses = statusesOf(filter)
  const conditions = [sql`true`]
  if (statuses) conditions.push(sql`o.status = any (${encodeArray(statuses)}::text::text[])`)
  if (type !== undefined) conditions.push(sql`o.event_type = ${type}::text`)
  if (topic !== undefined) conditions.push(sql`o.topic = ${topic}::text`)
  if (aggregateType !== undefined) conditions.push(sql`o.aggregate_type = ${aggregateType}::text`)
  if (aggregateId !== undefined) conditions.push(sql`o.aggregate_id = ${aggregateId}::text`)
  // Last, as it takes long.
  if (error !== undefined) {
    conditions.push(sql`o.last_error is not null and ${isError(sql`o.last_error`, error)}`)
  }
  return sql.join(conditions, sql` and `)
}

/** null: any status. */
export function statusesOf({ status }: EventFilter): readonly EventStatus[] | null {
  if (status === undefined) return null
  return typeof status === 'string' ? [status] : status
}

/** The time in an id has 48 bits. */
const LAST_MS = 2 ** 48 - 1

function firstIdOf(time: Date): string {
  const ms = Math.min(Math.max(time.getTime(), 0), LAST_MS)
  return ms.toString(16).padStart(12, '0').padEnd(32, '0')
}
