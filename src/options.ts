// The options: what a user may set, the defaults, and one resolve step that checks and freezes.
// Everything behind it works on ResolvedOptions, where durations are milliseconds and nothing is missing.
import { hostname } from 'node:os'
import { type Duration, formatDuration, show } from './duration.ts'
import { OutboxOptionsError } from './errors.ts'
import type { EventRules, NewEvent } from './events.ts'
import { guardLogger, type Logger, silentLogger } from './logger.ts'
import { isStorable } from './payload.ts'
import type { Publisher } from './publishers/publisher.ts'
import type { DrizzleDatabase } from './store/database.ts'
import { checkName, type TableName } from './store/table-name.ts'
import {
  rejectUnknown,
  requireBoolean,
  requireCount,
  requireDuration,
  requireMethods,
  requireOneOf,
} from './validate.ts'

export interface OutboxOptions<TDb extends DrizzleDatabase = DrizzleDatabase> {
  /** Any Drizzle Postgres database. The outbox never closes it. */
  db: TDb
  /** Where events go: `kafkaPublisher()`, `handlersPublisher()`, or your own. */
  publisher: Publisher
  /**
   * How long the immediate path owns a new event before the fallback may take it, and how soon the
   * events of a dead process come back. Shorter rescues sooner; too short and a stalled event loop
   * loses its leases, and with them the promise that nothing is sent twice. @default '7s'
   */
  threshold?: Duration
  /** How often the fallback looks for events that were left behind. @default '7s' */
  pollInterval?: Duration
  /** How many events one claim takes. While batches come back full there is no pause. @default 100 */
  batchSize?: number
  /**
   * After this time a send that has not settled counts as unknown: its destination is taken for out of
   * reach, nothing is recorded, and a late ack still counts. Must be shorter than threshold. @default '5s'
   */
  publishTimeout?: Duration
  /** How long stop() lets sends under way finish. @default '10s' */
  stopTimeout?: Duration
  /**
   * How many events the immediate path holds in memory. Past it new events stay in the table, for the
   * fallback: slower, never lost. @default 5000
   */
  maxInFlight?: number
  /** How often an event that is rejected is tried before it becomes a dead letter. @default 10 */
  maxAttempts?: number
  /** The same per event type: `{ InvoiceSent: 3 }`. */
  maxAttemptsByType?: Readonly<Record<string, number>>
  /** The wait after the first failed attempt; it doubles from there, plus a jitter of up to itself. @default '30s' */
  backoffBase?: Duration
  /** The longest wait between two attempts, before jitter. @default '30m' */
  backoffMax?: Duration
  /** Payload and headers together. Kafka brokers refuse more than about 1 MB by default. @default 1_000_000 */
  maxPayloadBytes?: number
  /**
   * The topic of events that name none: one name, or a function of the event.
   * @default the event's aggregate type
   */
  topic?: string | ((event: NewEvent) => string)
  /** `'key'` keeps the order of each aggregate's events; `'none'` gives it up. @default 'key' */
  ordering?: 'key' | 'none'
  /** The schema of the outbox table. @default 'public' */
  schema?: string
  /** The name of the outbox table. @default 'outbox' */
  table?: string
  /** Whether start() brings the table up to date. @default false */
  migrate?: boolean
  /** Whether events are published right after commit. Off: the fallback sends everything. @default true */
  immediate?: boolean
  /** Whether this process runs the fallback. Off: another process has to. @default true */
  poller?: boolean
  /** Off: events are saved and nothing is sent from this process. @default true */
  enabled?: boolean
  /** Seen on the rows this process holds. @default host name and process id */
  workerId?: string
  /** A pino-shaped logger. @default silent */
  logger?: Logger
}

export interface ResolvedOptions extends EventRules {
  readonly thresholdMs: number
  readonly pollIntervalMs: number
  readonly batchSize: number
  readonly publishTimeoutMs: number
  readonly stopTimeoutMs: number
  readonly maxInFlight: number
  readonly backoffBaseMs: number
  readonly backoffMaxMs: number
  readonly inOrder: boolean
  readonly table: TableName
  readonly migrate: boolean
  readonly immediate: boolean
  readonly poller: boolean
  readonly workerId: string
  readonly logger: Logger
}

export const DEFAULTS = Object.freeze({
  threshold: '7s',
  pollInterval: '7s',
  batchSize: 100,
  publishTimeout: '5s',
  stopTimeout: '10s',
  maxInFlight: 5_000,
  maxAttempts: 10,
  maxAttemptsByType: {},
  backoffBase: '30s',
  backoffMax: '30m',
  maxPayloadBytes: 1_000_000,
  ordering: 'key',
  schema: 'public',
  table: 'outbox',
  migrate: false,
  immediate: true,
  poller: true,
  enabled: true,
} as const satisfies Partial<OutboxOptions>)

const KNOWN = [...Object.keys(DEFAULTS), 'db', 'publisher', 'topic', 'workerId', 'logger']

export function resolveOptions(given: OutboxOptions): ResolvedOptions {
  rejectUnknown('createOutbox()', given, KNOWN)
  requireMethods('db', given.db, ['execute', 'transaction'], 'a Drizzle Postgres database')
  refuseSingleClient(given.db)
  requireMethods('publisher', given.publisher, ['publish'], 'a publisher such as kafkaPublisher()')
  const options = { ...DEFAULTS, ...withoutUndefined(given) }

  const enabled = requireBoolean('enabled', options.enabled)
  const resolved: ResolvedOptions = {
    thresholdMs: requireDuration('threshold', options.threshold, 100),
    pollIntervalMs: requireDuration('pollInterval', options.pollInterval, 10),
    batchSize: requireCount('batchSize', options.batchSize, 10_000),
    publishTimeoutMs: requireDuration('publishTimeout', options.publishTimeout, 10),
    stopTimeoutMs: requireDuration('stopTimeout', options.stopTimeout, 0),
    maxInFlight: requireCount('maxInFlight', options.maxInFlight, 1_000_000),
    maxAttempts: requireCount('maxAttempts', options.maxAttempts, 1_000_000),
    maxAttemptsByType: resolveAttemptsByType(options.maxAttemptsByType),
    backoffBaseMs: requireDuration('backoffBase', options.backoffBase, 0),
    backoffMaxMs: requireDuration('backoffMax', options.backoffMax, 0),
    maxPayloadBytes: requireCount('maxPayloadBytes', options.maxPayloadBytes, 2 ** 28),
    topic: requireTopic(options.topic),
    inOrder: requireOneOf('ordering', options.ordering, ['key', 'none']) === 'key',
    table: {
      schema: checkName('schema', options.schema),
      name: checkName('table', options.table),
    },
    migrate: requireBoolean('migrate', options.migrate),
    immediate: requireBoolean('immediate', options.immediate) && enabled,
    poller: requireBoolean('poller', options.poller) && enabled,
    workerId: requireName('workerId', options.workerId ?? `${hostname()}:${process.pid}`),
    logger: resolveLogger(options.logger),
  }
  crossCheck(resolved)
  return Object.freeze(resolved)
}

function crossCheck({
  thresholdMs,
  publishTimeoutMs,
  backoffBaseMs,
  backoffMaxMs,
}: ResolvedOptions) {
  // A send that starts on a fresh lease must end on it even if the database misses a renewal.
  if (thresholdMs <= publishTimeoutMs) {
    throw new OutboxOptionsError(
      `threshold must be longer than publishTimeout (${formatDuration(publishTimeoutMs)}), got ${formatDuration(thresholdMs)}; raise threshold or lower publishTimeout`,
    )
  }
  if (backoffMaxMs < backoffBaseMs) {
    throw new OutboxOptionsError(
      `backoffMax must not be shorter than backoffBase (${formatDuration(backoffBaseMs)}), got ${formatDuration(backoffMaxMs)}; raise backoffMax or lower backoffBase`,
    )
  }
}

// One connection for everything: an outcome recorded in the background would become part of whatever
// transaction is open on it, and be undone with it.
function refuseSingleClient(db: object): void {
  const { $client } = db as { $client?: object }
  if (!$client || !('connectionParameters' in $client)) return
  throw new OutboxOptionsError(
    'db runs on a single node-postgres Client, which transactions and the background would share; give Drizzle a Pool',
  )
}

function requireTopic(topic: OutboxOptions['topic']): OutboxOptions['topic'] {
  return topic === undefined || typeof topic === 'function' ? topic : requireName('topic', topic)
}

function requireName(option: string, value: unknown): string {
  if (typeof value === 'string' && value !== '' && isStorable(value)) return value
  throw new OutboxOptionsError(`${option} must be a non-empty string, got ${show(value)}`)
}

function resolveLogger(logger: Logger | undefined): Logger {
  if (logger === undefined) return silentLogger
  requireMethods(
    'logger',
    logger,
    ['debug', 'info', 'warn', 'error'],
    'pino-shaped: debug, info, warn, error',
  )
  return guardLogger(logger)
}

function withoutUndefined<T extends object>(given: T): T {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as T
}

function resolveAttemptsByType(byType: unknown): Readonly<Record<string, number>> {
  if (typeof byType !== 'object' || byType === null) {
    throw new OutboxOptionsError(`maxAttemptsByType must be an object, got ${show(byType)}`)
  }
  const entries = Object.entries(byType as Record<string, unknown>).map(
    ([type, count]) => [type, requireCount(`maxAttemptsByType.${type}`, count, 1_000_000)] as const,
  )
  // No prototype: an event type called 'constructor' must not find anything here.
  return Object.freeze(Object.assign(Object.create(null), Object.fromEntries(entries)))
}
