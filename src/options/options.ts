// The options: what a user may set, the defaults, and one resolve step that checks and freezes.
// Everything behind it works on ResolvedOptions, where durations are milliseconds and nothing is missing.
// Longer than other files: each option is explained here, and nowhere else in the code.
import { hostname } from 'node:os'
import { defineEvents, type EventCatalog } from './catalog.ts'
import { databaseOf } from './drivers/database-of.ts'
import type { AnyDatabase } from './drivers/driver.ts'
import { type Duration, formatDuration, show } from './duration.ts'
import type { EmitRules } from './emit.ts'
import { OutboxOptionsError } from './errors.ts'
import { type Logger, resolveLogger } from './logger.ts'
import type { Publisher } from './publishers/publisher.ts'
import {
  EVERY_TOPIC,
  isRouter,
  type RoutedPublisher,
  type RouterPublisher,
  routedTopics,
} from './publishers/router.ts'
import { type ResolvedSchedule, requireSchedule, type Schedule } from './schedule.ts'
import type { StoreRules } from './store/store.ts'
import { checkName } from './store/table-name.ts'
import { checkRoutes, resolveTopicRule, type TopicRule } from './topics.ts'
import {
  MAX_TIMER_MS,
  rejectUnknown,
  requireAge,
  requireBoolean,
  requireCount,
  requireDuration,
  requireMethods,
  requireName,
  requireOneOf,
  withoutUndefined,
} from './validate.ts'

export interface OutboxOptions<
  TDb extends AnyDatabase = AnyDatabase,
  TEvents extends EventCatalog | undefined = undefined,
> {
  /** Any Drizzle Postgres database, `postgresJs(sql)` or `nodePostgres(pool)`. The outbox never closes it. */
  db: TDb
  /** Where events go: `kafkaPublisher()`, `handlersPublisher()`, your own, or several: `routerPublisher()`. */
  publisher: Publisher | RouterPublisher
  /**
   * The catalog of events, from defineEvents(): emit() takes these and no others, each with its own type of
   * payload. @default emit() takes events of any name
   */
  events?: TEvents
  /**
   * How long the immediate path owns a new event before the fallback may take it, and how soon the
   * events of a dead process come back. Shorter rescues sooner; too short and a stalled event loop
   * loses its leases, and with them the promise that nothing is sent twice. @default '7s'
   */
  threshold?: Duration
  /** How often the fallback looks for events that were left behind. @default '7s' */
  pollInterval?: Duration
  /**
   * How many events one claim takes; fewer if they are large. While claims come back full there is no pause, and two
   * are on their way. @default what the publisher likes: 250, and with kafkajs up to 1000 while there is a backlog
   */
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
  /**
   * How many unsent events the table may hold before emit() refuses more with BACKLOG_FULL, and the unit of
   * work rolls back. About that many: units of work that run at the same time, here or elsewhere, do not
   * see each other's. @default no limit
   */
  maxBacklog?: number
  /** How often an event that is rejected is tried before it becomes a dead letter. @default 10 */
  maxAttempts?: number
  /** The same per event type: `{ InvoiceSent: 3 }`. What the catalog says of a type comes before. */
  maxAttemptsByType?: Readonly<Record<string, number>>
  /** The wait after the first failed attempt; it doubles from there, plus a jitter of up to itself. @default '30s' */
  backoffBase?: Duration
  /** The longest wait between two attempts, before jitter. @default '30m' */
  backoffMax?: Duration
  /** Payload and headers together. Kafka brokers refuse more than about 1 MB by default. @default 1_000_000 */
  maxPayloadBytes?: number
  /**
   * The topic of events that name none: one name, a table `{ byType, byAggregate }`, or a function of the
   * event. What the table does not name, or the function answers undefined for, is refused at emit.
   * @default the event's aggregate type
   */
  topic?: TopicRule
  /** `'key'` keeps the order of each aggregate's events; `'none'` gives it up. @default 'key' */
  ordering?: 'key' | 'none'
  /**
   * What becomes of the later events of an aggregate when one is a dead letter: they go on without it, or
   * wait until it is retried or discarded. @default 'continue'
   */
  onDeadLetter?: 'continue' | 'hold'
  /**
   * Whether units of work that emit for the same aggregate commit one after another, so that the order of
   * saving is the order of committing. Costs a statement per unit of work, and their waiting for each other
   * from the save to COMMIT; not needed where they lock the aggregate themselves. @default false
   */
  lockKeys?: boolean
  /**
   * A topic that gets a copy of each dead letter, as an event of the type `DeadLettered`: the same key and
   * payload, and in its headers what died of what. @default none
   */
  deadLetterTopic?: string
  /** How often the log warns of dead letters while there are any; false for never. @default '10m' */
  deadLetterCheck?: Duration | false
  /** How long published events are kept in the table. 0 deletes them as they are recorded. @default '7d' */
  retention?: Duration
  /** The same for dead letters. @default kept until they are retried or discarded */
  deadLetterRetention?: Duration
  /**
   * When old rows are deleted: at an interval, or by a cron expression such as `'0 3 * * *'`; false leaves
   * it to another process, or to outbox.purge(). @default '1h'
   */
  cleanup?: Schedule | false
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

export interface ResolvedOptions extends EmitRules, StoreRules {
  /** Where events go: a single one that takes every topic, unless the publisher is a router. */
  readonly destinations: readonly RoutedPublisher[]
  readonly thresholdMs: number
  readonly pollIntervalMs: number
  /** null: as the publisher likes it. */
  readonly batchSize: number | null
  readonly publishTimeoutMs: number
  readonly stopTimeoutMs: number
  readonly maxInFlight: number
  readonly maxBacklog: number | null
  readonly backoffBaseMs: number
  readonly backoffMaxMs: number
  readonly deadLetterCheckMs: number | null
  readonly retentionMs: number
  readonly deadLetterRetentionMs: number | null
  readonly cleanup: ResolvedSchedule | null
  readonly migrate: boolean
  readonly enabled: boolean
  readonly immediate: boolean
  readonly poller: boolean
  readonly workerId: string
  readonly logger: Logger
}

export const DEFAULTS = Object.freeze({
  threshold: '7s',
  pollInterval: '7s',
  publishTimeout: '5s',
  stopTimeout: '10s',
  maxInFlight: 5_000,
  maxAttempts: 10,
  maxAttemptsByType: {},
  backoffBase: '30s',
  backoffMax: '30m',
  maxPayloadBytes: 1_000_000,
  ordering: 'key',
  onDeadLetter: 'continue',
  lockKeys: false,
  deadLetterCheck: '10m',
  retention: '7d',
  cleanup: '1h',
  schema: 'public',
  table: 'outbox',
  migrate: false,
  immediate: true,
  poller: true,
  enabled: true,
} as const satisfies Partial<OutboxOptions>)

const KNOWN = [
  ...Object.keys(DEFAULTS),
  'db',
  'publisher',
  'events',
  'topic',
  'batchSize',
  'maxBacklog',
  'deadLetterTopic',
  'deadLetterRetention',
  'workerId',
  'logger',
]

/** What takes longer than a lease, and longer than this, has no one left who needs the answer. */
const SHORTEST_STATEMENT_TIMEOUT_MS = 5_000
const MAX_BATCH = 10_000

export function resolveOptions(
  given: OutboxOptions<AnyDatabase, EventCatalog | undefined>,
): ResolvedOptions {
  rejectUnknown('createOutbox()', given, KNOWN)
  databaseOf(given.db)
  const destinations = resolveDestinations(given.publisher)
  const options = { ...DEFAULTS, ...withoutUndefined(given) }

  const enabled = requireBoolean('enabled', options.enabled)
  const thresholdMs = requireDuration('threshold', options.threshold, 100)
  const retentionMs = options.retention === 0 ? 0 : requireAge('retention', options.retention)
  const resolved: ResolvedOptions = {
    destinations,
    routedTopics: routedTopics(destinations),
    thresholdMs,
    statementTimeoutMs: Math.max(thresholdMs, SHORTEST_STATEMENT_TIMEOUT_MS),
    pollIntervalMs: requireDuration('pollInterval', options.pollInterval, 10),
    batchSize: optional(options.batchSize, (size) => requireCount('batchSize', size, MAX_BATCH)),
    publishTimeoutMs: requireDuration('publishTimeout', options.publishTimeout, 10),
    stopTimeoutMs: requireDuration('stopTimeout', options.stopTimeout, 0),
    maxInFlight: requireCount('maxInFlight', options.maxInFlight, 1_000_000),
    maxBacklog: optional(options.maxBacklog, (max) => requireCount('maxBacklog', max, 2 ** 30)),
    maxAttempts: requireCount('maxAttempts', options.maxAttempts, 1_000_000),
    maxAttemptsByType: resolveAttemptsByType(options.maxAttemptsByType),
    backoffBaseMs: requireDuration('backoffBase', options.backoffBase, 0),
    backoffMaxMs: requireDuration('backoffMax', options.backoffMax, 0),
    maxPayloadBytes: requireCount('maxPayloadBytes', options.maxPayloadBytes, 2 ** 28),
    topic: resolveTopicRule(options.topic),
    catalog: optional(options.events, defineEvents),
    inOrder: requireOneOf('ordering', options.ordering, ['key', 'none']) === 'key',
    deadLettersHold:
      requireOneOf('onDeadLetter', options.onDeadLetter, ['continue', 'hold']) === 'hold',
    lockKeys: requireBoolean('lockKeys', options.lockKeys),
    deadLetterTopic: optional(options.deadLetterTopic, (name) => {
      return requireName('deadLetterTopic', name)
    }),
    deadLetterCheckMs:
      options.deadLetterCheck === false
        ? null
        : requireDuration('deadLetterCheck', options.deadLetterCheck, 1_000),
    retentionMs,
    keepPublished: retentionMs > 0,
    deadLetterRetentionMs: optional(options.deadLetterRetention, (age) => {
      return requireAge('deadLetterRetention', age)
    }),
    cleanup: options.cleanup === false ? null : requireSchedule('cleanup', options.cleanup),
    table: {
      schema: checkName('schema', options.schema),
      name: checkName('table', options.table),
    },
    migrate: requireBoolean('migrate', options.migrate),
    enabled,
    immediate: requireBoolean('immediate', options.immediate) && enabled,
    poller: requireBoolean('poller', options.poller) && enabled,
    workerId: requireName('workerId', options.workerId ?? `${hostname()}:${process.pid}`),
    logger: resolveLogger(options.logger),
  }
  checkRoutes(resolved)
  crossCheck(resolved)
  for (const destination of destinations) checkPublisher(resolved, destination)
  return Object.freeze(resolved)
}

function resolveDestinations(publisher: OutboxOptions['publisher']): readonly RoutedPublisher[] {
  if (isRouter(publisher)) return publisher.destinations
  const wanted = 'a publisher such as kafkaPublisher(), or several in a routerPublisher()'
  requireMethods('publisher', publisher, ['publish'], wanted)
  return [{ name: publisher.name, publisher, topics: EVERY_TOPIC }]
}

function crossCheck(options: ResolvedOptions) {
  const { thresholdMs, publishTimeoutMs, backoffBaseMs, backoffMaxMs } = options
  // A send that starts on a fresh lease must end on it even if the database misses a renewal.
  if (thresholdMs <= publishTimeoutMs) {
    throw new OutboxOptionsError(
      `threshold must be longer than publishTimeout (${formatDuration(publishTimeoutMs)}), got ${formatDuration(thresholdMs)}; raise threshold or lower publishTimeout`,
    )
  }
  if (options.deadLettersHold && options.deadLetterRetentionMs !== null) {
    throw new OutboxOptionsError(
      "deadLetterRetention would let go, unseen, of what onDeadLetter: 'hold' keeps back; remove one of them",
    )
  }
  if (!options.inOrder && (options.deadLettersHold || options.lockKeys)) {
    const option = options.lockKeys ? 'lockKeys: true' : "onDeadLetter: 'hold'"
    throw new OutboxOptionsError(
      `${option} keeps an order that ordering: 'none' gives up; remove one of them`,
    )
  }
  if (backoffMaxMs < backoffBaseMs) {
    throw new OutboxOptionsError(
      `backoffMax must not be shorter than backoffBase (${formatDuration(backoffBaseMs)}), got ${formatDuration(backoffMaxMs)}; raise backoffMax or lower backoffBase`,
    )
  }
}

function checkPublisher(
  { publishTimeoutMs }: ResolvedOptions,
  { name, publisher }: RoutedPublisher,
) {
  const { timeoutMs, settlesWithinMs, batchSize } = publisher
  if (batchSize !== undefined)
    requireCount(`batchSize of the publisher ${name}`, batchSize, MAX_BATCH)
  // Rows are let go when the client must have given up; if it has not, somebody else sends them meanwhile.
  const waitsMs = timeoutMs ?? publishTimeoutMs
  if (settlesWithinMs !== undefined && !(settlesWithinMs <= MAX_TIMER_MS)) {
    throw new OutboxOptionsError(
      `the publisher ${name} may take ${settlesWithinMs} ms to give up a send, longer than the 25 days that it could be waited for; lower its timeout or its retries`,
    )
  }
  if (settlesWithinMs !== undefined && settlesWithinMs < waitsMs) {
    throw new OutboxOptionsError(
      `the publisher ${name} says that a send settles within ${formatDuration(settlesWithinMs)}, but it is waited for longer: ${formatDuration(waitsMs)}; lower ${timeoutMs === undefined ? 'publishTimeout' : "the publisher's timeoutMs"} or raise its settlesWithinMs`,
    )
  }
}

function optional<T, R>(value: T | undefined, resolve: (value: T) => R): R | null {
  return value === undefined ? null : resolve(value)
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
