// The inbox's options: what a user may set, the defaults, and one resolve step that checks and freezes them.
import { defineEvents, type EventCatalog } from '../event/catalog.ts'
import { databaseOf } from '../drivers/database-of.ts'
import type { AnyDatabase } from '../drivers/driver.ts'
import type { Duration } from '../checks/duration.ts'
import { OutboxOptionsError } from '../errors.ts'
import { type Logger, resolveLogger } from '../runtime/logger.ts'
import { type ResolvedSchedule, requireSchedule, type Schedule } from '../checks/schedule.ts'
import { type GuardedTelemetry, guardTelemetry } from '../telemetry/guarded-telemetry.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { InboxRules } from '../store/inbox/statement.ts'
import { checkName } from '../store/table-name.ts'
import {
  rejectUnknown,
  requireAge,
  requireBoolean,
  requireName,
  requireOneOf,
  withoutUndefined,
} from '../checks/checks.ts'

export interface InboxOptions<
  TDb extends AnyDatabase = AnyDatabase,
  TEvents extends EventCatalog | undefined = undefined,
> {
  /** The database that the effects are written to, as createOutbox() takes it. The inbox never closes it. */
  db: TDb
  /**
   * The name of the consumer. Each consumer handles each event once. Processes that share the work use the same name;
   * processes with different effects use different names. At most 255 bytes.
   */
  consumer: string
  /**
   * The event catalog from defineEvents(), which types `event.payload` by `event.type`. Only the compiler uses it:
   * messages of other types are handled too. @default payloads are `unknown`
   */
  events?: TEvents
  /**
   * `'aggregate'` handles the events of an aggregate one at a time, and never one after a later one. This holds as far
   * as the outbox keeps their order: per Kafka topic, or across all topics of any other publisher. Each message must
   * have its aggregate and sequence. @default 'none'
   */
  order?: 'none' | 'aggregate'
  /**
   * How long the inbox remembers an event. An event that is delivered again after that is handled again.
   * @default '7d'
   */
  retention?: Duration
  /**
   * When old rows are deleted, between start() and stop(): an interval, or a cron expression such as `'0 3 * * *'`.
   * With false, another process or inbox.purge() has to delete them. @default '1h'
   */
  cleanup?: Schedule | false
  /** The schema of the inbox table. @default 'public' */
  schema?: string
  /** The name of the inbox table. @default 'inbox' */
  table?: string
  /** Whether start() creates or updates the table. @default false */
  migrate?: boolean
  /** A logger with the methods of pino; false for none. @default warnings and errors go to the console */
  logger?: Logger | false
  /** Traces and metrics: `otel()` from aftercommit/otel. One that throws is logged and changes nothing. @default none */
  telemetry?: Telemetry
}

export interface ResolvedInboxOptions extends InboxRules {
  readonly inOrder: boolean
  readonly cleanup: ResolvedSchedule | null
  readonly migrate: boolean
  readonly logger: Logger
  readonly telemetry: GuardedTelemetry | null
}

const DEFAULTS = Object.freeze({
  order: 'none',
  retention: '7d',
  cleanup: '1h',
  schema: 'public',
  table: 'inbox',
  migrate: false,
} as const satisfies Partial<InboxOptions>)

const KNOWN = [...Object.keys(DEFAULTS), 'db', 'consumer', 'events', 'logger', 'telemetry']

const MAX_CONSUMER_BYTES = 255

export function resolveInboxOptions(
  given: InboxOptions<AnyDatabase, EventCatalog | undefined>,
): ResolvedInboxOptions {
  rejectUnknown('createInbox()', given, KNOWN)
  databaseOf(given.db)
  const options = { ...DEFAULTS, ...withoutUndefined(given) }
  if (options.events !== undefined) defineEvents(options.events)
  const logger = resolveLogger(options.logger)
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
    logger,
    telemetry: guardTelemetry(options.telemetry, logger, () => ''),
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
