// The inbox's options: what a user may set, the defaults, and one resolve step that checks and freezes.
import { defineEvents, type EventCatalog } from '../catalog.ts'
import { databaseOf } from '../drivers/database-of.ts'
import type { AnyDatabase } from '../drivers/driver.ts'
import type { Duration } from '../duration.ts'
import { OutboxOptionsError } from '../errors.ts'
import { type Logger, resolveLogger } from '../logger.ts'
import { type ResolvedSchedule, requireSchedule, type Schedule } from '../schedule.ts'
import type { InboxRules } from '../store/inbox.ts'
import { checkName } from '../store/table-name.ts'
import {
  rejectUnknown,
  requireAge,
  requireBoolean,
  requireName,
  requireOneOf,
  withoutUndefined,
} from '../validate.ts'

export interface InboxOptions<
  TDb extends AnyDatabase = AnyDatabase,
  TEvents extends EventCatalog | undefined = undefined,
> {
  /** As for the outbox: the one that the effects are written to. The inbox never closes it. */
  db: TDb
  /**
   * Who handles: each consumer handles each event once. All processes that share the work say the same name, and
   * whoever has other effects another one. At most 255 bytes.
   */
  consumer: string
  /**
   * The catalog of events, from defineEvents(): types `event.payload` by `event.type`. It is for the compiler; a
   * message of another type is handled all the same. @default payloads are unknown
   */
  events?: TEvents
  /**
   * `'aggregate'` handles the events of an aggregate one at a time, and none after a later one of them; it needs
   * messages that say their aggregate and sequence. @default 'none'
   */
  order?: 'none' | 'aggregate'
  /**
   * For how long an event is remembered. What is delivered again later than that is handled again.
   * @default '7d'
   */
  retention?: Duration
  /**
   * When old rows are deleted, between start() and stop(): at an interval, or by a cron expression such as
   * `'0 3 * * *'`; false leaves it to another process, or to inbox.purge(). @default '1h'
   */
  cleanup?: Schedule | false
  /** The schema of the inbox table. @default 'public' */
  schema?: string
  /** The name of the inbox table. @default 'inbox' */
  table?: string
  /** Whether start() brings the table up to date. @default false */
  migrate?: boolean
  /** A pino-shaped logger. @default silent */
  logger?: Logger
}

export interface ResolvedInboxOptions extends InboxRules {
  readonly inOrder: boolean
  readonly cleanup: ResolvedSchedule | null
  readonly migrate: boolean
  readonly logger: Logger
}

const DEFAULTS = Object.freeze({
  order: 'none',
  retention: '7d',
  cleanup: '1h',
  schema: 'public',
  table: 'inbox',
  migrate: false,
} as const satisfies Partial<InboxOptions>)

const KNOWN = [...Object.keys(DEFAULTS), 'db', 'consumer', 'events', 'logger']

const MAX_CONSUMER_BYTES = 255

export function resolveInboxOptions(
  given: InboxOptions<AnyDatabase, EventCatalog | undefined>,
): ResolvedInboxOptions {
  rejectUnknown('createInbox()', given, KNOWN)
  databaseOf(given.db)
  const options = { ...DEFAULTS, ...withoutUndefined(given) }
  if (options.events !== undefined) defineEvents(options.events)
  return Object.freeze({
    consumer: requireConsumer(options.consumer),
    inOrder: requireOneOf('order', options.order, ['none', 'aggregate']) === 'aggregate',
    retentionMs: requireAge('retention', options.retention),
    cleanup: options.cleanup === false ? null : requireSchedule('cleanup', options.cleanup),
    table: {
      schema: checkName('schema', options.schema),
      name: checkName('table', options.table),
    },
    migrate: requireBoolean('migrate', options.migrate),
    logger: resolveLogger(options.logger),
  })
}

function requireConsumer(consumer: unknown): string {
  const name = requireName('consumer', consumer)
  const bytes = Buffer.byteLength(name)
  if (bytes <= MAX_CONSUMER_BYTES) return name
  throw new OutboxOptionsError(
    `consumer takes ${bytes} bytes, more than the ${MAX_CONSUMER_BYTES} allowed; shorten it`,
  )
}
