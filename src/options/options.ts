// The options: what a user may set, the defaults, and one resolve step that checks and freezes them.
// All other files work on ResolvedOptions, where durations are milliseconds and nothing is missing.
// Longer than other files, because each option is explained here and nowhere else in the code.
import { hostname } from 'node:os'
import { defineEvents, type EventCatalog } from '../event/catalog.ts'
import { databaseOf } from '../drivers/database-of.ts'
import type { AnyDatabase } from '../drivers/driver.ts'
import { type Duration, formatDuration, show } from '../checks/duration.ts'
import type { EmitRules } from '../event/emit.ts'
import type { PayloadHooks } from '../event/stored-payload.ts'
import { OutboxOptionsError } from '../errors.ts'
import { type Logger, resolveLogger } from '../runtime/logger.ts'
import type { Publisher } from '../publishers/publisher.ts'
import {
  destinationByTopic,
  EVERY_TOPIC,
  isRouter,
  orderScopes,
  type RoutedPublisher,
  type RouterPublisher,
  routedTopics,
} from '../publishers/router.ts'
import { type ResolvedSchedule, requireSchedule, type Schedule } from '../checks/schedule.ts'
import { type GuardedTelemetry, guardTelemetry } from '../telemetry/guarded-telemetry.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { StoreRules } from '../store/outbox/outbox-store.ts'
import { checkName } from '../store/table-name.ts'
import { checkRoutes, resolveTopicRule, type TopicRule } from '../event/topic.ts'
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
  suggest,
  withoutUndefined,
} from '../checks/checks.ts'

export interface OutboxOptions<
  TDb extends AnyDatabase = AnyDatabase,
  TEvents extends EventCatalog | undefined = undefined,
> {
  /** A Drizzle Postgres database, or your client wrapped by its driver, such as `postgresJs(sql)`. The outbox never closes it. */
  db: TDb
  /** Where events go: `kafkaPublisher()`, `handlersPublisher()`, your own, or several through `routerPublisher()`. */
  publisher: Publisher | RouterPublisher
  /**
   * The event catalog from defineEvents(). emit() then accepts only these events, each with its own payload type.
   * @default emit() takes events of any name
   */
  events?: TEvents
  /**
   * How long the immediate path owns a new event before the fallback may take it. Also how soon the fallback takes
   * over the events of a dead process. A shorter threshold rescues events sooner. With one that is too short, a
   * stalled event loop loses its leases, and events may be sent twice. @default '7s'
   */
  threshold?: Duration
  /** How often the fallback looks for events that the immediate path left behind. @default '7s' */
  pollInterval?: Duration
  /**
   * How many events one claim takes; fewer if they are large. While claims come back full, the fallback does not pause
   * and runs three at once. @default the publisher's preferred size: 250, or with kafkajs up to 1000 in a backlog
   */
  batchSize?: number
  /**
   * How long a send may take before its outcome counts as unknown. The outbox then treats the destination as out of
   * reach and records nothing; a late ack still counts. Must be shorter than threshold. @default '5s'
   */
  publishTimeout?: Duration
  /**
   * How long stop() takes, unless the database does not respond. Sends under way may finish in all but the last half second
   * of it. @default '10s'
   */
  stopTimeout?: Duration
  /**
   * How many events the immediate path holds in memory. Beyond that, new events stay in the table for the fallback:
   * slower, but never lost. @default 5000
   */
  maxInFlight?: number
  /**
   * How many unsent events the table may hold. Beyond that, emit() throws BACKLOG_FULL and the unit of work rolls back.
   * The limit is approximate: concurrent units of work, in this process or another, do not see each other's events.
   * @default no limit
   */
  maxBacklog?: number
  /** How many times the outbox tries a rejected event before it becomes a dead letter. @default 10 */
  maxAttempts?: number
  /** `maxAttempts` per event type: `{ InvoiceSent: 3 }`. A catalog declaration takes precedence. */
  maxAttemptsByType?: Readonly<Record<string, number>>
  /** The wait after the first failed attempt. It doubles with each further one, plus a jitter of up to `backoffBase`. @default '30s' */
  backoffBase?: Duration
  /** The longest wait between two attempts, before jitter. @default '30m' */
  backoffMax?: Duration
  /** Payload plus headers, at most. Kafka brokers refuse more than about 1 MB by default. @default 1_000_000 */
  maxPayloadBytes?: number
  /**
   * What the table holds instead of payloads: `{ write, read }`. To encrypt them, or to keep large ones elsewhere. See
   * docs/guides/sensitive-data.md. @default the payloads themselves
   */
  payloads?: PayloadHooks
  /**
   * The topic of events that name none: one name, a table `{ byType, byAggregate }`, or a function of the event.
   * emit() refuses an event that the table does not list, or for which the function returns undefined.
   * @default the event's aggregate type
   */
  topic?: TopicRule
  /**
   * `'aggregate'` sends the events of each aggregate in the order in which they were saved, within the scope in which a
   * consumer can observe order: one Kafka topic, everything sent through one RabbitMQ publisher, or all handlers.
   * `'none'` keeps no order. @default 'aggregate'
   */
  order?: 'aggregate' | 'none'
  /**
   * What happens to the later events of a lane (an aggregate, as far as its order reaches) when one becomes a dead
   * letter. `'continue'` sends them without it; `'hold'` keeps them back until it is retried or discarded. @default 'continue'
   */
  onDeadLetter?: 'continue' | 'hold'
  /**
   * Whether units of work that emit for the same aggregate and destination commit one after another, so that events
   * are saved in commit order. Costs one statement per unit of work, and units wait for each other from the save to
   * COMMIT. Not needed where units of work lock the aggregate themselves. @default false
   */
  lockKeys?: boolean
  /**
   * A topic that receives a copy of each dead letter, as an event of the type `DeadLettered`. The copy has the same key
   * and payload; its headers name the original event and its error. @default none
   */
  deadLetterTopic?: string
  /** How often the outbox logs a warning while there are dead letters; false for never. @default '10m' */
  deadLetterCheck?: Duration | false
  /** How long published events stay in the table. 0 deletes each one when it is recorded. @default '7d' */
  retention?: Duration
  /** How long dead letters stay in the table. @default kept until they are retried or discarded */
  deadLetterRetention?: Duration
  /**
   * When old rows are deleted: an interval, or a cron expression such as `'0 3 * * *'`. With false, another process or
   * outbox.purge() has to delete them. @default '1h'
   */
  cleanup?: Schedule | false
  /** The schema of the outbox table. @default 'public' */
  schema?: string
  /** The name of the outbox table. @default 'outbox' */
  table?: string
  /**
   * Whether start() creates or updates the table. `'partitioned'` also turns it into a partitioned table for good.
   * @default false
   */
  migrate?: boolean | 'partitioned'
  /**
   * Who sends the events. `'outbox'`: this library. `'cdc'`: Debezium on Kafka Connect, which reads them from the log of the
   * database; this process only saves them. See docs/guides/cdc.md. @default 'outbox'
   */
  relay?: 'outbox' | 'cdc'
  /** Whether events are published right after commit. If false, the fallback sends everything. @default true */
  immediate?: boolean
  /** Whether this process runs the fallback. If false, another process has to run it. @default true */
  poller?: boolean
  /** If false, this process saves events and sends nothing. @default true */
  enabled?: boolean
  /** Names this process in the rows that it holds. @default host name and process id */
  workerId?: string
  /** A logger with the methods of pino; false for none. @default warnings and errors go to the console */
  logger?: Logger | false
  /** Traces and metrics: `otel()` from aftercommit/otel. One that throws is logged and changes nothing. @default none */
  telemetry?: Telemetry
}

/** With relay: 'cdc' no publisher is needed. If one is set, it is not used, but has to be Kafka's. */
export type CdcOutboxOptions<
  TDb extends AnyDatabase = AnyDatabase,
  TEvents extends EventCatalog | undefined = undefined,
> = Omit<OutboxOptions<TDb, TEvents>, 'publisher' | 'relay'> & {
  relay: 'cdc'
  publisher?: OutboxOptions['publisher']
}

export interface ResolvedOptions extends EmitRules, StoreRules {
  /** null: the table holds the payloads themselves. */
  readonly payloads: PayloadHooks | null
  readonly relay: 'outbox' | 'cdc'
  /** Where this process sends events. A single destination takes every topic, unless the publisher is a router. */
  readonly destinations: readonly RoutedPublisher[]
  readonly thresholdMs: number
  readonly pollIntervalMs: number
  /** null: the publisher's preferred size. */
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
  readonly migrate: boolean | 'partitioned'
  readonly enabled: boolean
  readonly immediate: boolean
  readonly poller: boolean
  readonly workerId: string
  readonly logger: Logger
  /** null: the path makes no calls for it. */
  readonly telemetry: GuardedTelemetry | null
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
  order: 'aggregate',
  onDeadLetter: 'continue',
  lockKeys: false,
  deadLetterCheck: '10m',
  retention: '7d',
  cleanup: '1h',
  schema: 'public',
  table: 'outbox',
  migrate: false,
  relay: 'outbox',
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
  'telemetry',
  'payloads',
]

const RENAMED = { ordering: "'order'; 'key' became 'aggregate', the default" }

/** A background statement fails once it outlasts both a lease and this time: no step needs its result any more. */
const SHORTEST_STATEMENT_TIMEOUT_MS = 5_000
const MAX_BATCH = 10_000

export function resolveOptions(
  given:
    | OutboxOptions<AnyDatabase, EventCatalog | undefined>
    | CdcOutboxOptions<AnyDatabase, EventCatalog | undefined>,
): ResolvedOptions {
  rejectUnknown('createOutbox()', given, KNOWN, RENAMED)
  databaseOf(given.db)
  const options = { ...DEFAULTS, ...withoutUndefined(given) }
  const relay = requireOneOf<'outbox' | 'cdc'>('relay', options.relay, ['outbox', 'cdc'])
  const isCdc = relay === 'cdc'
  const destinations = isCdc
    ? resolveForCdc(given.publisher)
    : resolveDestinations(given.publisher!)

  if ((options.order as string) === 'key') {
    throw new OutboxOptionsError("order: 'key' is now order: 'aggregate', the default")
  }
  const inOrder = requireOneOf('order', options.order, ['aggregate', 'none']) === 'aggregate'
  const enabled = requireBoolean('enabled', options.enabled)
  const thresholdMs = requireDuration('threshold', options.threshold, 100)
  const logger = resolveLogger(options.logger)
  const retentionMs = options.retention === 0 ? 0 : requireAge('retention', options.retention)
  const resolved: ResolvedOptions = {
    relay,
    savesForCdc: isCdc,
    destinations: isCdc ? [] : destinations,
    routedTopics: routedTopics(destinations),
    orderScopes: inOrder ? orderScopes(destinations) : null,
    thresholdMs,
    statementTimeoutMs: Math.max(thresholdMs, SHORTEST_STATEMENT_TIMEOUT_MS),
    pollIntervalMs: requireDuration('pollInterval', options.pollInterval, 10),
    batchSize: optional(options.batchSize, (size) => requireCount('batchSize', size, MAX_BATCH)),
    publishTimeoutMs: requireDuration('publishTimeout', options.publishTimeout, 10),
    stopTimeoutMs: requireDuration('stopTimeout', options.stopTimeout, 0),
    maxInFlight: requireCount('maxInFlight', options.maxInFlight, 1_000_000),
    maxBacklog: optional(options.maxBacklog, (max) => requireCount('maxBacklog', max, 2 ** 30)),
    maxAttempts: requireCount('maxAttempts', options.maxAttempts, 1_000_000),
    maxAttemptsByType: resolveAttemptsByType(options.maxAttemptsByType, options.events),
    backoffBaseMs: requireDuration('backoffBase', options.backoffBase, 0),
    backoffMaxMs: requireDuration('backoffMax', options.backoffMax, 0),
    maxPayloadBytes: requireCount('maxPayloadBytes', options.maxPayloadBytes, 2 ** 28),
    payloads: optional(options.payloads, resolvePayloadHooks),
    topic: resolveTopicRule(options.topic),
    catalog: optional(options.events, defineEvents),
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
    migrate: requireOneOf('migrate', options.migrate, [true, false, 'partitioned']),
    enabled,
    immediate: requireBoolean('immediate', options.immediate) && enabled && !isCdc,
    poller: requireBoolean('poller', options.poller) && enabled && !isCdc,
    workerId: requireName('workerId', options.workerId ?? `${hostname()}:${process.pid}`),
    logger,
    telemetry: guardTelemetry(options.telemetry, logger, systemByTopic(destinations)),
  }
  checkRoutes(resolved)
  crossCheck(resolved, inOrder)
  for (const destination of destinations) checkPublisher(resolved, destination)
  return Object.freeze(resolved)
}

/** The destination of a connector's events, for lanes and telemetry. */
const KAFKA_CONNECT: Publisher = {
  name: 'kafka-connect',
  system: 'kafka',
  orderScope: 'topic',
  publish: () => Promise.reject(new OutboxOptionsError("relay: 'cdc' sends nothing itself")),
}

function resolveForCdc(given: OutboxOptions['publisher'] | undefined): readonly RoutedPublisher[] {
  const destinations = resolveDestinations(given ?? KAFKA_CONNECT)
  const other = destinations.find(({ publisher }) => publisher.system !== 'kafka')
  if (!other) return destinations
  throw new OutboxOptionsError(
    `relay: 'cdc' sends every event to Kafka, but the publisher ${other.name} sends to something else; give its events an outbox with a table of its own`,
  )
}

function resolveDestinations(publisher: OutboxOptions['publisher']): readonly RoutedPublisher[] {
  if (isRouter(publisher)) return publisher.destinations
  const wanted = 'a publisher such as kafkaPublisher(), or several in a routerPublisher()'
  requireMethods('publisher', publisher, ['publish'], wanted)
  return [{ name: publisher.name, publisher, topics: EVERY_TOPIC }]
}

function systemByTopic(destinations: readonly RoutedPublisher[]): (topic: string) => string {
  const destinationOf = destinationByTopic(destinations)
  return (topic) => {
    const { name, publisher } = destinationOf(topic)
    return publisher.system ?? name
  }
}

function crossCheck(options: ResolvedOptions, inOrder: boolean) {
  const { thresholdMs, publishTimeoutMs, backoffBaseMs, backoffMaxMs } = options
  // Otherwise even a send whose response comes in time could lose its lease to one late renewal.
  if (thresholdMs <= publishTimeoutMs) {
    throw new OutboxOptionsError(
      `threshold must be longer than publishTimeout (${formatDuration(publishTimeoutMs)}), got ${formatDuration(thresholdMs)}; raise threshold or lower publishTimeout`,
    )
  }
  if (options.deadLettersHold && options.deadLetterRetentionMs !== null) {
    throw new OutboxOptionsError(
      "deadLetterRetention would silently delete dead letters and so release the events that onDeadLetter: 'hold' keeps back; remove one of the two",
    )
  }
  if (!inOrder && (options.deadLettersHold || options.lockKeys)) {
    const option = options.lockKeys ? 'lockKeys: true' : "onDeadLetter: 'hold'"
    throw new OutboxOptionsError(
      `${option} has no effect with order: 'none', which keeps no order; remove one of them`,
    )
  }
  if (options.relay === 'cdc' && options.maxBacklog !== null) {
    throw new OutboxOptionsError(
      "maxBacklog counts events that wait in the table, and with relay: 'cdc' none do; remove it, and watch the replication slot instead",
    )
  }
  if (options.relay === 'cdc' && !options.keepPublished) {
    throw new OutboxOptionsError(
      "retention: 0 with relay: 'cdc' would keep no event, so a lost replication slot would lose events; set a retention such as '1d'",
    )
  }
  if (options.relay === 'cdc' && options.payloads?.read) {
    throw new OutboxOptionsError(
      "relay: 'cdc' sends what the table holds, so payloads.read would never be called; remove it and let consumers read the payloads, or relay: 'outbox'",
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
  requireName('the name of the publisher', publisher.name)
  checkSpelling(name, publisher)
  const { timeoutMs, settlesWithinMs, batchSize, perLane = false, system } = publisher
  if (system !== undefined) requireName(`system of the publisher ${name}`, system)
  const { orderScope = 'publisher' } = publisher
  requireOneOf(`orderScope of the publisher ${name}`, orderScope, ['topic', 'publisher'])
  requireBoolean(`perLane of the publisher ${name}`, perLane)
  if (batchSize !== undefined)
    requireCount(`batchSize of the publisher ${name}`, batchSize, MAX_BATCH)
  for (const [field, ms] of Object.entries({ timeoutMs, settlesWithinMs })) {
    if (ms === undefined || (typeof ms === 'number' && ms > 0)) continue
    throw new OutboxOptionsError(
      `${field} of the publisher ${name} must be a number of milliseconds above 0, got ${show(ms)}`,
    )
  }
  // The outbox releases rows once the client must have given up. If it has not, another instance sends them meanwhile.
  const waitsMs = timeoutMs ?? publishTimeoutMs
  if (settlesWithinMs !== undefined && !(settlesWithinMs <= MAX_TIMER_MS)) {
    throw new OutboxOptionsError(
      `the publisher ${name} may take ${settlesWithinMs} ms to give up on a send, longer than the 25 days that the outbox can wait; lower its timeout or its retries`,
    )
  }
  if (settlesWithinMs !== undefined && settlesWithinMs < waitsMs) {
    throw new OutboxOptionsError(
      `the publisher ${name} declares that a send settles within ${formatDuration(settlesWithinMs)}, but the outbox waits for ${formatDuration(waitsMs)}; lower ${timeoutMs === undefined ? 'publishTimeout' : "the publisher's timeoutMs"} or raise its settlesWithinMs`,
    )
  }
}

const PUBLISHER_FIELDS = [
  'system',
  'timeoutMs',
  'settlesWithinMs',
  'orderScope',
  'perLane',
  'batchSize',
]

// A publisher may have fields of its own, so only what is clearly meant as one of ours is refused.
function checkSpelling(name: string, publisher: Publisher): void {
  if ('perAggregate' in publisher) {
    throw new OutboxOptionsError(
      `'perAggregate' of the publisher ${name} is now called 'perLane'; rename it`,
    )
  }
  for (const field of Object.keys(publisher)) {
    const meant = PUBLISHER_FIELDS.find((known) => known.toLowerCase() === field.toLowerCase())
    if (meant === undefined || meant === field) continue
    throw new OutboxOptionsError(`the publisher ${name} has '${field}'; did you mean '${meant}'?`)
  }
}

function optional<T, R>(value: T | undefined, resolve: (value: T) => R): R | null {
  return value === undefined ? null : resolve(value)
}

function resolvePayloadHooks(given: PayloadHooks): PayloadHooks {
  rejectUnknown('payloads', given, ['write', 'read'])
  const hooks: PayloadHooks = {}
  for (const name of ['write', 'read'] as const) {
    const hook = given[name]
    if (hook === undefined) continue
    if (typeof hook !== 'function') {
      throw new OutboxOptionsError(`payloads.${name} must be a function, got ${show(hook)}`)
    }
    hooks[name] = hook.bind(given)
  }
  if (Object.keys(hooks).length > 0) return Object.freeze(hooks)
  throw new OutboxOptionsError('payloads needs write, read or both; add one, or remove the option')
}

function resolveAttemptsByType(
  byType: unknown,
  events: EventCatalog | undefined,
): Readonly<Record<string, number>> {
  if (typeof byType !== 'object' || byType === null) {
    throw new OutboxOptionsError(`maxAttemptsByType must be an object, got ${show(byType)}`)
  }
  const declared = Object.keys(events ?? byType)
  const unknown = Object.keys(byType).find((type) => !declared.includes(type))
  if (unknown !== undefined) {
    throw new OutboxOptionsError(
      `maxAttemptsByType names '${unknown}', which the catalog does not declare; ${suggest(unknown, declared)}`,
    )
  }
  const entries = Object.entries(byType as Record<string, unknown>).map(
    ([type, count]) => [type, requireCount(`maxAttemptsByType.${type}`, count, 1_000_000)] as const,
  )
  // No prototype: an event type called 'constructor' must not match an inherited property.
  return Object.freeze(Object.assign(Object.create(null), Object.fromEntries(entries)))
}
