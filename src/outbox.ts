// createOutbox() wires the path from its end to its beginning, because each step receives the next one. To follow an
// event, read the lines from `units` up to `recorder`: a unit of work saves it, the delivery sends it, the recorder
// records its outcome. Longer than other files, because its JSDoc is what users read in their editor.
import { performance } from 'node:perf_hooks'
import { rejectUnknown, requireBoolean, requireDuration } from './checks/checks.ts'
import type { Duration } from './checks/duration.ts'
import { backgroundLoops } from './runtime/background.ts'
import { Bell } from './runtime/bell.ts'
import { BackgroundLogger } from './runtime/logger.ts'
import type { Loop } from './runtime/loop.ts'
import { raceTimeout } from './runtime/race-timeout.ts'
import { stopOnSignals } from './runtime/signals.ts'
import { StartStop } from './runtime/start-stop.ts'
import { Delivery, type DrainResult } from './delivery/delivery.ts'
import type { FlushResult } from './delivery/flush.ts'
import { OwnEvents } from './delivery/own-events.ts'
import { Pauses } from './delivery/pauses.ts'
import { Recorder } from './delivery/record.ts'
import { Renewal } from './delivery/renewal.ts'
import { databaseOf } from './drivers/database-of.ts'
import type { OwnTransaction } from './drivers/own-transaction.ts'
import type { AnyDatabase, Database, Executor, HandleOf, TransactionOf } from './drivers/driver.ts'
import { toError } from './errors.ts'
import type { EventCatalog } from './event/catalog.ts'
import type { EmitInOf, EmitOf } from './event/emit.ts'
import { Lifecycle, type OutboxEvents } from './lifecycle.ts'
import {
  type CdcOutboxOptions,
  type OutboxOptions,
  type ResolvedOptions,
  resolveOptions,
} from './options/options.ts'
import type { MigrateOptions } from './store/migrate.ts'
import { typesHandledBy } from './publishers/handlers.ts'
import type { Instance, Pause } from './store/outbox/control-store.ts'
import type { Store } from './store/outbox/outbox-store.ts'
import { postgresStore } from './store/outbox/postgres.ts'
import type { PublisherActivity } from './telemetry/telemetry.ts'
import { Backlog } from './unit-of-work/backlog.ts'
import { checkedSaves } from './unit-of-work/checked-saves.ts'
import { EmitIn } from './unit-of-work/emit-in.ts'
import { LeftToConnector } from './unit-of-work/hand-over.ts'
import { type Scheduled, ScheduledDesk } from './unit-of-work/scheduled.ts'
import { type UnitOfWorkOptions, UnitsOfWork } from './unit-of-work/unit-of-work.ts'
import { type CdcProblem, findBehind, findUnprepared, requirePrepared } from './upkeep/cdc.ts'
import { DeadLetterDesk, type DeadLetters } from './upkeep/dead-letters.ts'
import { type Browse, EventBrowser } from './upkeep/browse.ts'
import { FailureDesk, type Failures } from './upkeep/failures.ts'
import type { DoneBy } from './upkeep/done-by.ts'
import { reportHeldBack } from './upkeep/held-back.ts'
import { History } from './upkeep/history.ts'
import { Health, type HealthLimits, type OutboxHealth, type OutboxStats } from './upkeep/health.ts'
import { keepParts } from './upkeep/own-parts.ts'
import { PauseDesk, type PauseDetails } from './upkeep/pause-desk.ts'
import { Presence } from './upkeep/presence.ts'
import { Reporter } from './upkeep/reporter.ts'
import {
  redact,
  type RedactDetails,
  type RedactParts,
  type RedactResult,
  type RedactSelection,
} from './upkeep/redact.ts'
import { reroute, type RerouteParts, type RerouteResult } from './upkeep/reroute.ts'
import { outboxRound, Retention } from './upkeep/retention.ts'
import { compareSettings } from './upkeep/shared-settings.ts'
import { warnOfUncalled } from './upkeep/uncalled-handlers.ts'
import { Unrouted } from './upkeep/unrouted.ts'

/** The limit for closing connections, after everything has been sent or given up. */
const CLOSE_TIMEOUT_MS = 2_000
/** As much of stopTimeout is kept for closing. A client that is still connecting may take longer; it goes on alone. */
const KEPT_FOR_CLOSING_MS = 500

/** Keeps the process alive until stop() resolves, even if nothing else is left to do. */
const KEEP_ALIVE = { keepAlive: true }

const FLUSH_TIMEOUT = '5s'
const DRAIN_TIMEOUT = '30s'

export interface FlushOptions {
  /** How long flush() takes at most. Sends that are under way then go on, if the process does. @default '5s' */
  timeout?: Duration
}

export interface DrainOptions {
  /** How long drain() takes at most, unless the database does not respond. @default '30s' */
  timeout?: Duration
}

/** Creates an outbox. Checks the options and throws OutboxOptionsError before anything runs. */
export function createOutbox<
  TDb extends AnyDatabase,
  TEvents extends EventCatalog | undefined = undefined,
>(options: OutboxOptions<TDb, TEvents> | CdcOutboxOptions<TDb, TEvents>): Outbox<TDb, TEvents> {
  return new HybridOutbox(options)
}

/** What createOutbox() returns. Without private members, so that a test can replace it with a plain object. */
export interface Outbox<
  TDb extends AnyDatabase = AnyDatabase,
  TEvents extends EventCatalog | undefined = undefined,
> extends Pick<HybridOutbox<TDb, TEvents>, keyof HybridOutbox<TDb, TEvents>> {}

class HybridOutbox<
  TDb extends AnyDatabase = AnyDatabase,
  TEvents extends EventCatalog | undefined = undefined,
> implements AsyncDisposable
{
  readonly #options: ResolvedOptions
  readonly #logger: BackgroundLogger
  readonly #lifecycle: Lifecycle
  readonly #store: Store<Executor>
  readonly #delivery: Delivery
  readonly #units: UnitsOfWork
  readonly #emitIn: EmitIn
  readonly #database: Database<unknown>
  #handle: HandleOf<TDb> | null = null
  #isCdcReady = false
  readonly #retention: Retention
  readonly #health: Health
  readonly #presence: Presence
  readonly #pauseDesk: PauseDesk
  readonly #renewal: Renewal
  readonly #desk: RerouteParts & RedactParts
  readonly #cleanLoop: Loop
  readonly #checkLoop: Loop
  readonly #life = new StartStop(
    () => this.#start(),
    () => this.#stop(),
  )

  /** Events that the outbox gave up on: list, retry or discard them. */
  readonly deadLetters: DeadLetters
  readonly #deadLetterDesk: DeadLetterDesk
  /** Dead letters, and events that rest after a failed attempt, in groups of one cause: retry or discard them. */
  readonly failures: Failures
  /** Events that were emitted with `deliverAt` or `deliverAfter`: cancel one that has not gone out. */
  readonly scheduled: Scheduled
  /** A look at the events in the table. Only reads. */
  readonly browse: Browse

  constructor(given: OutboxOptions<TDb, TEvents> | CdcOutboxOptions<TDb, TEvents>) {
    const resolved = resolveOptions(given)
    const logger = new BackgroundLogger(resolved.logger)
    const options = Object.freeze({ ...resolved, logger })
    const { deadLettersHold, maxBacklog } = options
    const db = databaseOf(given.db)
    const lifecycle = new Lifecycle(resolved.logger)
    const store = postgresStore(db, options)
    const newLoop = backgroundLoops(logger, (failure) => lifecycle.tell('error', failure))
    const bell = new Bell()

    const own = new OwnEvents(options.maxInFlight)
    const recorder = new Recorder({ store, options, lifecycle, own, bell })
    const pauses = new Pauses({ lifecycle, logger, bell })
    const shared = { store, options, lifecycle, recorder, newLoop, bell }
    const delivery = new Delivery({ ...shared, own, pauses })
    const backlog = maxBacklog === null ? null : new Backlog({ store, max: maxBacklog, recorder })
    const next = options.relay === 'cdc' ? new LeftToConnector(lifecycle) : delivery
    const requireReady = (tx: Executor) => this.#requireCdc(tx)
    const saving =
      options.relay === 'cdc' ? checkedSaves(store, () => this.#isCdcReady, requireReady) : store
    const saves = { store: saving, options, backlog, delivery: next }
    const units = new UnitsOfWork({ ...saves, db })

    const emitIn = new EmitIn({ ...saves, units, newLoop, bell })

    compareSettings(db.client, options)
    if (options.orderScopes) reportHeldBack(lifecycle, options.orderScopes, logger)
    for (const one of options.destinations)
      warnOfUncalled(options, [one], typesHandledBy(one.publisher), logger)
    const unrouted = new Unrouted(store, options.routedTopics, logger)
    this.#options = options
    this.#logger = logger
    this.#lifecycle = lifecycle
    this.#store = store
    this.#delivery = delivery
    this.#units = units
    this.#emitIn = emitIn
    this.#database = db
    this.#retention = new Retention(outboxRound(store, options), logger)
    const findCdcProblems =
      options.relay === 'cdc' ? (mostBytes: number) => this.#findCdcProblems(mostBytes) : null
    const history = new History(lifecycle)
    const watched = { store, delivery, unrouted, lifecycle, history }
    this.#health = new Health({ ...watched, deadLettersHold, findCdcProblems })
    const reporter = new Reporter({ lifecycle, delivery })
    this.#presence = new Presence({
      control: store.control,
      options,
      pauses,
      reporter,
      history,
      lifecycle,
      newLoop,
    })
    // The calls of people are logged, also after stop().
    const { routedTopics } = options
    const desk = { store, logger: resolved.logger, bell, routedTopics }
    this.#desk = desk
    this.#pauseDesk = new PauseDesk({ control: store.control, pauses, logger: resolved.logger })
    this.#deadLetterDesk = new DeadLetterDesk(desk)
    this.deadLetters = this.#deadLetterDesk
    this.failures = new FailureDesk(desk)
    this.scheduled = new ScheduledDesk({ db, store, units })
    this.browse = new EventBrowser({ store })
    const { thresholdMs } = options
    this.#renewal = new Renewal({ delivery, recorder, newLoop, thresholdMs })
    this.#cleanLoop = newLoop('cleanup', options.cleanup?.pauseMs ?? 0, () => {
      return this.#retention.runOnce()
    })
    this.#checkLoop = newLoop('dead-letter check', options.deadLetterCheckMs ?? 0, async () => {
      await this.#deadLetterDesk.check()
      await unrouted.check()
      return false
    })
    keepParts(this, { db, options, logger: resolved.logger, bell, pauses, history })
    options.telemetry?.watch(this)
  }

  /** Lifecycle events, which report what happens in the background. A listener that throws does not disturb it. */
  get events(): OutboxEvents {
    return this.#lifecycle.events
  }

  /**
   * Runs `work` in a transaction. Events emitted inside are saved in its last statement and published after COMMIT; the
   * returned promise does not wait for the broker. If `work` throws, everything rolls back and withOutbox() rethrows
   * the error unchanged. Inside another unit of work it joins that one. Do not call it inside a transaction that your own
   * code began: it would commit separately. Begin that one on `outbox.db`, or use emitIn().
   */
  withOutbox<T>(
    work: (tx: TransactionOf<TDb>, emit: EmitOf<TEvents>) => Promise<T> | T,
    options?: UnitOfWorkOptions,
  ): Promise<T> {
    return this.#units.run(work, options)
  }

  /** Emits into the unit of work that encloses this call, at any depth. Throws outside of one. */
  get emit(): EmitOf<TEvents> {
    return this.#units.emit as EmitOf<TEvents>
  }

  /**
   * Your own database handle, watched: each `transaction()` that is begun on it (`begin()` with postgres.js) is a unit of
   * work, so code that has transactions of its own can emit() inside them. As on your handle, each is a transaction
   * of its own, even inside another one.
   */
  get db(): HandleOf<TDb> {
    return (this.#handle ??= this.#database.watched((work, settings) =>
      this.#units.transact(work, settings),
    ) as HandleOf<TDb>)
  }

  /**
   * Saves into a transaction that your own code began, and publishes soon after its COMMIT, never after a rollback.
   * Await it before that transaction ends. If it rejects, let the transaction fail.
   */
  get emitIn(): EmitInOf<OwnTransaction, TEvents> {
    return this.#emitIn.emitIn as unknown as EmitInOf<OwnTransaction, TEvents>
  }

  /**
   * Creates or updates the outbox table. Safe to call from many processes at once. `{ partitioned: true }` makes it a
   * partitioned table, also if it has rows; without that, a partitioned table stays one.
   */
  async migrate(options: MigrateOptions = {}): Promise<void> {
    rejectUnknown('migrate()', options, ['partitioned'])
    const { partitioned = this.#options.migrate === 'partitioned' } = options
    await this.#store.migrate({ partitioned: requireBoolean('partitioned', partitioned) })
  }

  /** Starts publishing. Does not wait for the broker: events stay in the table until it is reachable. */
  start(): Promise<void> {
    return this.#life.start()
  }

  /**
   * Waits up to `stopTimeout` for sends that are under way, then releases the events that were not sent, so that
   * another instance can take them at once. Units of work may continue: they save events for an instance that runs. After
   * it has resolved, nothing is logged about sends that were still under way; lifecycle events report them.
   */
  stop(): Promise<void> {
    return this.#life.stop()
  }

  /**
   * Opt-in: calls stop() when the process receives one of these signals. The signal then takes its usual effect, unless
   * the application listens for it too. Returns a function that removes the listeners.
   */
  stopOnSignals(signals: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT']): () => void {
    return stopOnSignals(signals, () => this.stop())
  }

  /**
   * Sends everything that this process committed and that has no outcome yet, and waits for the outcomes: for functions
   * that are frozen after their response; await it before that. Works with and without start(), also for emitIn(). Sends
   * no other events, except earlier and later ones of the same aggregates. Does not reject because a broker or the database
   * cannot be reached: the result lists what is left and why. Those events are in the table, for any instance or drain().
   */
  async flush(options: FlushOptions = {}): Promise<FlushResult> {
    const until = deadlineOf('flush()', options, FLUSH_TIMEOUT)
    const { enabled } = this.#options
    let unknown = 0
    const result = await this.#sendNow(async (isEnded) => {
      const trouble = await this.#prepareFlush(until)
      if (trouble) unknown = this.#emitIn.watchedCount
      if (!enabled || trouble) return this.#delivery.unsent(trouble ?? 'disabled')
      return await this.#delivery.flush(until, isEnded)
    })
    const untracked = result.untracked + this.#emitIn.takeUntracked() + unknown
    return { ...result, ok: result.ok && untracked === 0, untracked }
  }

  /**
   * Sends what is due, whichever process committed it, until nothing more can be sent now or the time is over: for a
   * scheduled function that replaces a process with start(). A destination that is out of reach gets one probe. Rejects
   * if the database fails.
   */
  async drain(options: DrainOptions = {}): Promise<DrainResult> {
    const until = deadlineOf('drain()', options, DRAIN_TIMEOUT)
    if (!this.#options.enabled) return { delivered: 0, failed: 0, dead: 0, timedOut: false }
    return await this.#sendNow(async (isEnded) => {
      await this.#presence.readPauses()
      return await this.#delivery.sendDue(until, isEnded)
    })
  }

  /**
   * Runs one round of the fallback now, for tests. Returns how many events it claimed, whatever their outcome; 0 means that
   * nothing can be sent now. Jobs that your own scheduler starts call drain().
   */
  async pollOnce(): Promise<number> {
    return await this.#sendNow(async (isEnded) => {
      await this.#presence.readPauses()
      return await this.#delivery.pollOnce(isEnded)
    })
  }

  /**
   * Pauses a topic, or with null everything: its events wait in the table and use up no attempts. In force here when
   * it resolves, and within 15 seconds in every other instance that reaches the database. Sends under way finish. Returns
   * false if it was paused already.
   */
  pause(topic: string | null, details: PauseDetails = {}): Promise<boolean> {
    return this.#pauseDesk.pause(topic, details)
  }

  /**
   * Ends the pause of a topic, or with null the pause of everything; topics that are paused by name stay paused. What
   * waited goes out at once from here, and within 15 seconds from other instances. Returns false if it was not paused.
   */
  resume(topic: string | null, details: DoneBy = {}): Promise<boolean> {
    return this.#pauseDesk.resume(topic, details)
  }

  /**
   * Moves unsent events from one topic to another, such as after a typing error in a topic. They are due at once, and keep
   * their order among themselves; later events of the same aggregate may have gone out before them. Events that a process
   * holds are left, and `held` counts them: call it again. Dead letters are left too.
   */
  reroute(from: string, to: string, details: DoneBy = {}): Promise<RerouteResult> {
    return reroute(this.#desk, from, to, details)
  }

  /**
   * Replaces the payloads of published events and dead letters, such as all of a person who has to be forgotten, and removes
   * headers by name. Events that still have to go out are left, and `left` counts them, unless `unsent` is set.
   */
  redact(selection: RedactSelection, details: RedactDetails = {}): Promise<RedactResult> {
    return redact(this.#desk, selection, details)
  }

  /** What is paused now. */
  pauses(): Promise<Pause[]> {
    return this.#store.control.pauses()
  }

  /** The instances that run on this table. One that was killed is listed for an hour: see `seenMsAgo`. */
  instances(): Promise<Instance[]> {
    return this.#store.control.instances()
  }

  /** Deletes rows that are past their retention now, without waiting for `cleanup`. Returns how many rows. */
  purge(details: DoneBy = {}): Promise<number> {
    return this.#retention.purge(details)
  }

  /** The state of the table, and what this process did in the last minute. Cheap at any table size. */
  stats(): Promise<OutboxStats> {
    return this.#health.stats()
  }

  /** Whether any of these numbers exceeds its limit. An unreachable database is reported as a flag, not thrown. */
  health(limits?: HealthLimits): Promise<OutboxHealth> {
    return this.#health.health(limits)
  }

  /** What each publisher of this process is doing now, from memory. */
  activity(): readonly PublisherActivity[] {
    return this.#delivery.activity()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  /** For what sends with or without start(), also after stop(). */
  #sendNow<T>(send: (isEnded: () => boolean) => Promise<T>): Promise<T> {
    this.#logger.isSilent = false
    return this.#renewal.during(() => this.#delivery.during(send))
  }

  /** Learns what has committed and what is paused. Returns what kept it from that, if anything. */
  async #prepareFlush(until: number): Promise<'database' | 'timeout' | null> {
    const reading = async () => {
      try {
        await this.#emitIn.catchUp()
        await this.#presence.readPauses()
        return null
      } catch (thrown) {
        this.#lifecycle.tell('error', { step: 'flush', error: toError(thrown) })
        return 'database'
      }
    }
    const read = await raceTimeout(reading(), until - performance.now(), KEEP_ALIVE)
    return read === 'late' ? 'timeout' : read
  }

  async #findCdcProblems(mostBytes: number): Promise<CdcProblem[]> {
    const found = await this.#store.cdc()
    return [...findUnprepared(found, this.#options.table), ...findBehind(found, mostBytes)]
  }

  /** What was found ready is not looked at again by saves; health() watches it from then on. */
  async #requireCdc(tx?: Executor): Promise<void> {
    requirePrepared(await this.#store.cdc(tx), this.#options.table)
    this.#isCdcReady = true
  }

  async #start(): Promise<void> {
    const { relay, migrate, enabled, immediate, poller, cleanup, deadLetterCheckMs } = this.#options
    this.#logger.isSilent = false
    if (migrate !== false) await this.migrate()
    const newer = await this.#store.verify()
    if (newer.length > 0) {
      this.#logger.warn(
        { migrations: newer },
        'a newer version has migrated the table; this version works with it, but should be updated',
      )
    }
    if (relay === 'cdc') await this.#requireCdc()
    if (!enabled) return
    // Before anything is delivered: the first beat reads the pauses.
    await this.#presence.enter()
    if (cleanup) this.#cleanLoop.start(cleanup)
    if (deadLetterCheckMs !== null) this.#checkLoop.start()
    if (!immediate && !poller) return
    this.#renewal.start()
    this.#delivery.start()
    this.#emitIn.start()
    const { workerId, thresholdMs } = this.#options
    const publishers = this.#delivery.descriptions
    this.#logger.info({ publishers, workerId, thresholdMs }, 'outbox started')
  }

  async #stop(): Promise<void> {
    const { stopTimeoutMs } = this.#options
    const closesAt = performance.now() + stopTimeoutMs
    const drainsUntil = closesAt - Math.min(KEPT_FOR_CLOSING_MS, stopTimeoutMs / 4)
    await raceTimeout(this.#emitIn.stop(), CLOSE_TIMEOUT_MS, KEEP_ALIVE)
    const drainMs = drainsUntil - performance.now()
    if ((await raceTimeout(this.#delivery.drain(), drainMs, KEEP_ALIVE)) === 'late') {
      const publishers = this.#delivery.draining
      this.#logger.warn(
        { publishers },
        'stopTimeout passed while sends were under way; other instances take over the remaining events',
      )
      await raceTimeout(this.#delivery.release(), CLOSE_TIMEOUT_MS, KEEP_ALIVE)
    }
    // Nothing that could hang is waited for without a limit: neither a renewal on a dead connection nor a client that
    // disconnects.
    const loops = [this.#renewal, this.#cleanLoop, this.#checkLoop]
    const closed = Promise.all([
      ...loops.map((loop) => loop.stop()),
      this.#delivery.close(),
      this.#presence.leave(),
    ])
    const leftMs = Math.max(KEPT_FOR_CLOSING_MS, closesAt - performance.now())
    const closeMs = Math.min(CLOSE_TIMEOUT_MS, leftMs)
    await raceTimeout(closed, closeMs, KEEP_ALIVE)
    this.#logger.info({}, 'outbox stopped')
    this.#logger.isSilent = true
  }
}

/** Until when, by performance.now(), a call with a `timeout` may take. */
function deadlineOf(call: string, options: { timeout?: Duration }, otherwise: Duration): number {
  rejectUnknown(call, options, ['timeout'])
  const { timeout = otherwise } = options
  return performance.now() + requireDuration('timeout', timeout, 0)
}
