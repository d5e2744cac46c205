// createOutbox() wires the path. Read the constructor from top to bottom and you have followed an event
// from emit to its record; each step gets the next one handed in. What is done for one publisher alone is wired in
// pipeline.ts.
import { AsyncResource } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { backgroundLoops } from './background.ts'
import { Backlog } from './backlog.ts'
import type { EventCatalog } from './catalog.ts'
import { Cleaner, outboxKinds } from './cleaner.ts'
import { DeadLetters } from './dead-letters.ts'
import { databaseOf } from './drivers/database-of.ts'
import type { AnyDatabase, Executor, TransactionOf } from './drivers/driver.ts'
import type { EmitOf } from './emit.ts'
import { refOf } from './events.ts'
import type { BirthLease } from './fast-path.ts'
import { Health, type HealthLimits, type OutboxHealth, type OutboxStats } from './health.ts'
import { type LeasedEvent, renewIntervalMs } from './leases.ts'
import { Lifecycle, type OutboxEvents } from './lifecycle.ts'
import type { Loop } from './loop.ts'
import { type OutboxOptions, type ResolvedOptions, resolveOptions } from './options.ts'
import { Pipelines } from './pipelines.ts'
import { raceTimeout } from './race-timeout.ts'
import { Settler } from './settle.ts'
import { stopOnSignals } from './signals.ts'
import { StartStop } from './start-stop.ts'
import { postgresStore } from './store/postgres.ts'
import type { SavedEvent, Store } from './store/store.ts'
import { type UnitOfWorkOptions, UnitsOfWork } from './unit-of-work.ts'
import { Unrouted } from './unrouted.ts'

/** For saying good-bye, after everything has been sent or given up. */
const CLOSE_TIMEOUT_MS = 2_000

/** Whoever awaits stop() gets its answer, even with nothing else left to do. */
const KEEP_ALIVE = { keepAlive: true }

/** Options are checked here: what cannot work throws OutboxOptionsError before anything runs. */
export function createOutbox<
  TDb extends AnyDatabase,
  TEvents extends EventCatalog | undefined = undefined,
>(options: OutboxOptions<TDb, TEvents>): Outbox<TDb, TEvents> {
  return new Outbox(options)
}

export class Outbox<
  TDb extends AnyDatabase = AnyDatabase,
  TEvents extends EventCatalog | undefined = undefined,
> implements AsyncDisposable
{
  readonly #options: ResolvedOptions
  readonly #lifecycle: Lifecycle
  readonly #store: Store<Executor>
  readonly #units: UnitsOfWork
  readonly #pipelines: Pipelines
  readonly #settler: Settler
  readonly #cleaner: Cleaner
  readonly #health: Health
  readonly #renewLoop: Loop
  readonly #cleanLoop: Loop
  readonly #checkLoop: Loop
  readonly #background = new AsyncResource('aftercommit')
  readonly #life = new StartStop(
    () => this.#start(),
    () => this.#stop(),
  )

  /** What was given up: list, retry, discard. */
  readonly deadLetters: DeadLetters

  /** @internal Use createOutbox(). */
  constructor(given: OutboxOptions<TDb, TEvents>) {
    const options = resolveOptions(given)
    const db = databaseOf(given.db)
    const lifecycle = new Lifecycle(options.logger)
    const store = postgresStore(db, options)
    const newLoop = backgroundLoops(options.logger, (failure) => lifecycle.tell('error', failure))
    const wakePollers = () => this.#pipelines.wake()

    const units = new UnitsOfWork({
      db,
      store,
      options,
      backlog: new Backlog(store, options.maxBacklog, lifecycle),
      token: randomUUID(),
      wanted: (events) => this.#pipelines.wants(events),
      afterCommit: (events, lease) => this.#afterCommit(events, lease),
    })
    const drop = (leased: readonly LeasedEvent[]) => this.#pipelines.drop(leased)
    const settler = new Settler(store, { drop }, lifecycle, options, wakePollers)
    const pipelines = new Pipelines({
      store,
      options,
      settler,
      lifecycle,
      newLoop,
      watchPoll: (round) => this.#health.watchPoll(round),
    })
    const unrouted = new Unrouted(store, options.routedTopics, options.logger)

    this.#options = options
    this.#lifecycle = lifecycle
    this.#store = store
    this.#units = units
    this.#pipelines = pipelines
    this.#settler = settler
    this.#cleaner = new Cleaner(outboxKinds(store, options), options.logger)
    this.#health = new Health(store, pipelines, unrouted, lifecycle, options.deadLettersHold)
    this.deadLetters = new DeadLetters(store, options.logger, wakePollers)
    this.#renewLoop = newLoop('renew', renewIntervalMs(options.thresholdMs), async () => {
      await pipelines.renewOnce()
      return false
    })
    this.#cleanLoop = newLoop('cleanup', options.cleanup?.pauseMs ?? 0, () => {
      return this.#cleaner.runOnce()
    })
    this.#checkLoop = newLoop('dead-letter check', options.deadLetterCheckMs ?? 0, async () => {
      await this.deadLetters.check()
      await unrouted.check()
      return false
    })
  }

  /** Lifecycle events: what happened in the background. Listeners cannot disturb it. */
  get events(): OutboxEvents {
    return this.#lifecycle.events
  }

  /**
   * Runs `work` in a transaction. Events emitted inside are saved as its last statement and published
   * after COMMIT; the returned promise does not wait for the broker. If `work` throws, everything rolls
   * back and the error comes out unchanged. Inside another unit of work it joins that one.
   */
  withOutbox<T>(
    work: (tx: TransactionOf<TDb>, emit: EmitOf<TEvents>) => Promise<T> | T,
    options?: UnitOfWorkOptions,
  ): Promise<T> {
    return this.#units.run(work, options)
  }

  /** Emits into the unit of work that this call is part of, from any depth. Outside one it throws. */
  get emit(): EmitOf<TEvents> {
    return this.#units.emit as EmitOf<TEvents>
  }

  /** Creates or updates the outbox table. Safe to call from many processes at once. */
  migrate(): Promise<void> {
    return this.#store.migrate()
  }

  /** Starts publishing. Does not wait for the broker: while it is away, events wait in the table. */
  start(): Promise<void> {
    return this.#life.start()
  }

  /**
   * Lets sends under way finish within `stopTimeout`, then frees what was not sent, so that another
   * instance takes it at once. Units of work may go on: their events are saved, for whoever is running.
   */
  stop(): Promise<void> {
    return this.#life.stop()
  }

  /**
   * Opt-in: stop() when the process is asked to end. Afterwards the signal does what it would have done,
   * unless somebody else listens for it. Answers a function that takes this back.
   */
  stopOnSignals(signals: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT']): () => void {
    return stopOnSignals(signals, () => this.stop())
  }

  /**
   * One round of the fallback, now: for tests and for jobs that a scheduler of your own starts. Answers how
   * many events it claimed; 0 means that there is nothing that could be sent now. Leases are kept up until stop().
   */
  async pollOnce(): Promise<number> {
    this.#renewLoop.start()
    return await this.#pipelines.pollOnce()
  }

  /** Deletes what is past its retention, now, without waiting for `cleanup`. Answers how many rows. */
  purge(): Promise<number> {
    return this.#cleaner.purge()
  }

  /** What the table holds, and what this process did in the last minute. Cheap, however large the table. */
  stats(): Promise<OutboxStats> {
    return this.#health.stats()
  }

  /** Whether any of that is a worry. A database that is away is an answer, not an error. */
  health(limits?: HealthLimits): Promise<OutboxHealth> {
    return this.#health.health(limits)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #start(): Promise<void> {
    const { migrate, enabled, immediate, poller, cleanup, deadLetterCheckMs } = this.#options
    if (migrate) await this.#store.migrate()
    else await this.#store.verify()
    this.#settler.setPatience(true)
    if (!enabled) return
    if (cleanup) this.#cleanLoop.start(cleanup)
    if (deadLetterCheckMs !== null) this.#checkLoop.start()
    if (!immediate && !poller) return
    this.#renewLoop.start()
    this.#pipelines.start()
    const { logger, workerId, thresholdMs } = this.#options
    const publishers = this.#pipelines.descriptions
    logger.info({ publishers, workerId, thresholdMs }, 'outbox started')
  }

  async #stop(): Promise<void> {
    const { stopTimeoutMs, logger } = this.#options
    const drained = this.#pipelines.drain().then(() => this.#settler.idle())
    if ((await raceTimeout(drained, stopTimeoutMs, KEEP_ALIVE)) === 'late') {
      const publishers = this.#pipelines.draining
      logger.warn(
        { publishers },
        'stopTimeout passed with sends under way; other instances take what is left',
      )
      await raceTimeout(this.#pipelines.release(), CLOSE_TIMEOUT_MS, KEEP_ALIVE)
    }
    // From here on an outcome that cannot be recorded is left to the fallback, and nothing is waited for
    // that could hang: neither a renewal on a dead connection nor a client that says good-bye.
    this.#settler.setPatience(false)
    const loops = [this.#renewLoop, this.#cleanLoop, this.#checkLoop]
    const closed = Promise.all([...loops.map((loop) => loop.stop()), this.#pipelines.close()])
    await raceTimeout(closed, CLOSE_TIMEOUT_MS, KEEP_ALIVE)
    logger.info({}, 'outbox stopped')
  }

  // In the outbox's own async context: what runs from here on belongs to no request, and a handler must
  // not find itself inside somebody's unit of work.
  #afterCommit(events: readonly SavedEvent[], lease: BirthLease | null): void {
    this.#background.runInAsyncScope(() => {
      if (this.#lifecycle.hasListeners('event:saved')) {
        for (const event of events) this.#lifecycle.tell('event:saved', { event: refOf(event) })
      }
      this.#pipelines.handOver(events, lease)
    })
  }
}
