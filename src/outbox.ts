// createOutbox() wires the path from its end to its beginning, because each step receives the next one. To follow an
// event, read the lines from `units` up to `recorder`: a unit of work saves it, the delivery sends it, the recorder
// records its outcome. Longer than other files, because its JSDoc is what users read in their editor.
import { performance } from 'node:perf_hooks'
import { rejectUnknown, requireBoolean } from './checks/checks.ts'
import { backgroundLoops } from './runtime/background.ts'
import { Bell } from './runtime/bell.ts'
import type { Loop } from './runtime/loop.ts'
import { raceTimeout } from './runtime/race-timeout.ts'
import { stopOnSignals } from './runtime/signals.ts'
import { StartStop } from './runtime/start-stop.ts'
import { Delivery } from './delivery/delivery.ts'
import { renewIntervalMs } from './delivery/leases.ts'
import { Recorder } from './delivery/record.ts'
import { databaseOf } from './drivers/database-of.ts'
import type { OwnTransaction } from './drivers/own-transaction.ts'
import type { AnyDatabase, Database, Executor, HandleOf, TransactionOf } from './drivers/driver.ts'
import type { EventCatalog } from './event/catalog.ts'
import type { EmitInOf, EmitOf } from './event/emit.ts'
import { Lifecycle, type OutboxEvents } from './lifecycle.ts'
import { type OutboxOptions, type ResolvedOptions, resolveOptions } from './options/options.ts'
import type { MigrateOptions } from './store/migrate.ts'
import type { Store } from './store/outbox/outbox-store.ts'
import { postgresStore } from './store/outbox/postgres.ts'
import { Backlog } from './unit-of-work/backlog.ts'
import { EmitIn } from './unit-of-work/emit-in.ts'
import { type UnitOfWorkOptions, UnitsOfWork } from './unit-of-work/unit-of-work.ts'
import { DeadLetterDesk, type DeadLetters } from './upkeep/dead-letters.ts'
import { reportHeldBack } from './upkeep/held-back.ts'
import { Health, type HealthLimits, type OutboxHealth, type OutboxStats } from './upkeep/health.ts'
import { outboxRound, Retention } from './upkeep/retention.ts'
import { compareSettings } from './upkeep/shared-settings.ts'
import { Unrouted } from './upkeep/unrouted.ts'

/** The limit for closing connections, after everything has been sent or given up. */
const CLOSE_TIMEOUT_MS = 2_000
/** As much of stopTimeout is kept for closing. A client that is still connecting may take longer; it goes on alone. */
const KEPT_FOR_CLOSING_MS = 500

/** Keeps the process alive until stop() resolves, even if nothing else is left to do. */
const KEEP_ALIVE = { keepAlive: true }

/** Creates an outbox. Checks the options and throws OutboxOptionsError before anything runs. */
export function createOutbox<
  TDb extends AnyDatabase,
  TEvents extends EventCatalog | undefined = undefined,
>(options: OutboxOptions<TDb, TEvents>): Outbox<TDb, TEvents> {
  return new HybridOutbox(options)
}

/** What createOutbox() returns. Without private members, so that a test can stand in for it with a plain object. */
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
  readonly #lifecycle: Lifecycle
  readonly #store: Store<Executor>
  readonly #recorder: Recorder
  readonly #delivery: Delivery
  readonly #units: UnitsOfWork
  readonly #emitIn: EmitIn
  readonly #database: Database<unknown>
  #handle: HandleOf<TDb> | null = null
  readonly #retention: Retention
  readonly #health: Health
  readonly #renewLoop: Loop
  readonly #cleanLoop: Loop
  readonly #checkLoop: Loop
  readonly #life = new StartStop(
    () => this.#start(),
    () => this.#stop(),
  )

  /** Events that the outbox gave up on: list, retry or discard them. */
  readonly deadLetters: DeadLetters
  readonly #deadLetterDesk: DeadLetterDesk

  constructor(given: OutboxOptions<TDb, TEvents>) {
    const options = resolveOptions(given)
    const { logger, deadLettersHold, maxBacklog } = options
    const db = databaseOf(given.db)
    const lifecycle = new Lifecycle(logger)
    const store = postgresStore(db, options)
    const newLoop = backgroundLoops(logger, (failure) => lifecycle.tell('error', failure))
    const bell = new Bell()

    const recorder = new Recorder({ store, options, lifecycle, bell })
    const delivery = new Delivery({ store, options, lifecycle, recorder, newLoop, bell })
    const backlog = maxBacklog === null ? null : new Backlog({ store, max: maxBacklog, recorder })
    const units = new UnitsOfWork({ db, store, options, backlog, delivery })

    const emitIn = new EmitIn({ store, options, units, backlog, delivery, newLoop, bell })

    compareSettings(db.client, options)
    if (options.orderScopes) reportHeldBack(lifecycle, options.orderScopes, logger)
    const unrouted = new Unrouted(store, options.routedTopics, logger)
    this.#options = options
    this.#lifecycle = lifecycle
    this.#store = store
    this.#recorder = recorder
    this.#delivery = delivery
    this.#units = units
    this.#emitIn = emitIn
    this.#database = db
    this.#retention = new Retention(outboxRound(store, options), logger)
    this.#health = new Health({ store, delivery, unrouted, lifecycle, deadLettersHold })
    this.#deadLetterDesk = new DeadLetterDesk({ store, logger, bell })
    this.deadLetters = this.#deadLetterDesk
    this.#renewLoop = newLoop('renew', renewIntervalMs(options.thresholdMs), async () => {
      await delivery.renewOnce()
      return false
    })
    this.#cleanLoop = newLoop('cleanup', options.cleanup?.pauseMs ?? 0, () => {
      return this.#retention.runOnce()
    })
    this.#checkLoop = newLoop('dead-letter check', options.deadLetterCheckMs ?? 0, async () => {
      await this.#deadLetterDesk.check()
      await unrouted.check()
      return false
    })
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
   * another instance can take them at once. Units of work may continue: they save events for an instance that runs.
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
   * Runs one round of the fallback now, for tests and for jobs that your own scheduler starts. Returns how many events
   * it claimed; 0 means that nothing can be sent now. The outbox keeps renewing leases until stop().
   */
  async pollOnce(): Promise<number> {
    this.#renewLoop.start()
    return await this.#delivery.pollOnce()
  }

  /** Deletes rows that are past their retention now, without waiting for `cleanup`. Returns how many rows. */
  purge(): Promise<number> {
    return this.#retention.purge()
  }

  /** What the table holds, and what this process did in the last minute. Cheap at any table size. */
  stats(): Promise<OutboxStats> {
    return this.#health.stats()
  }

  /** Whether any of these numbers exceeds its limit. An unreachable database is reported as a flag, not thrown. */
  health(limits?: HealthLimits): Promise<OutboxHealth> {
    return this.#health.health(limits)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #start(): Promise<void> {
    const { migrate, enabled, immediate, poller, cleanup, deadLetterCheckMs } = this.#options
    if (migrate !== false) await this.migrate()
    await this.#store.verify()
    this.#recorder.setPatience(true)
    if (!enabled) return
    if (cleanup) this.#cleanLoop.start(cleanup)
    if (deadLetterCheckMs !== null) this.#checkLoop.start()
    if (!immediate && !poller) return
    this.#renewLoop.start()
    this.#delivery.start()
    this.#emitIn.start()
    const { logger, workerId, thresholdMs } = this.#options
    const publishers = this.#delivery.descriptions
    logger.info({ publishers, workerId, thresholdMs }, 'outbox started')
  }

  async #stop(): Promise<void> {
    const { stopTimeoutMs, logger } = this.#options
    const closesAt = performance.now() + stopTimeoutMs
    const drainsUntil = closesAt - Math.min(KEPT_FOR_CLOSING_MS, stopTimeoutMs / 4)
    await raceTimeout(this.#emitIn.stop(), CLOSE_TIMEOUT_MS, KEEP_ALIVE)
    const drainMs = drainsUntil - performance.now()
    if ((await raceTimeout(this.#delivery.drain(), drainMs, KEEP_ALIVE)) === 'late') {
      const publishers = this.#delivery.draining
      logger.warn(
        { publishers },
        'stopTimeout passed while sends were under way; other instances take over the remaining events',
      )
      await raceTimeout(this.#delivery.release(), CLOSE_TIMEOUT_MS, KEEP_ALIVE)
    }
    // From here on, outcomes that cannot be recorded are left to the fallback. Nothing that could hang is waited for
    // without a limit: neither a renewal on a dead connection nor a client that disconnects.
    this.#recorder.setPatience(false)
    const loops = [this.#renewLoop, this.#cleanLoop, this.#checkLoop]
    const closed = Promise.all([...loops.map((loop) => loop.stop()), this.#delivery.close()])
    const leftMs = Math.max(KEPT_FOR_CLOSING_MS, closesAt - performance.now())
    const closeMs = Math.min(CLOSE_TIMEOUT_MS, leftMs)
    await raceTimeout(closed, closeMs, KEEP_ALIVE)
    logger.info({}, 'outbox stopped')
  }
}
