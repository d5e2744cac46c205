// createOutbox() wires the path. Read the constructor from top to bottom and you have followed an event
// from emit to its record; each step gets the next one handed in. As the one file that names every part it
// is longer than the others.
import { AsyncResource } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { Backlog } from './backlog.ts'
import type { EventCatalog } from './catalog.ts'
import { Circuits } from './circuit.ts'
import { Cleaner } from './cleaner.ts'
import { DeadLetters } from './dead-letters.ts'
import { Delivery } from './delivery.ts'
import type { EmitOf } from './emit.ts'
import { toError } from './errors.ts'
import { refOf } from './events.ts'
import { type BirthLease, FastPath } from './fast-path.ts'
import { Health, type HealthLimits, type OutboxHealth, type OutboxStats } from './health.ts'
import { Leases } from './leases.ts'
import { Lifecycle, type OutboxEvents } from './lifecycle.ts'
import { Loop } from './loop.ts'
import { type OutboxOptions, type ResolvedOptions, resolveOptions } from './options.ts'
import { Poller } from './poller.ts'
import type { Publisher } from './publishers/publisher.ts'
import { raceTimeout } from './race-timeout.ts'
import { Settler } from './settle.ts'
import { stopOnSignals } from './signals.ts'
import type { DrizzleDatabase, Executor, TransactionOf } from './store/database.ts'
import { postgresStore } from './store/postgres.ts'
import type { SavedEvent, Store } from './store/store.ts'
import { Trouble } from './trouble.ts'
import { type UnitOfWorkOptions, UnitsOfWork } from './unit-of-work.ts'

/** For saying good-bye, after everything has been sent or given up. */
const CLOSE_TIMEOUT_MS = 2_000

/** Whoever awaits stop() gets its answer, even with nothing else left to do. */
const KEEP_ALIVE = { keepAlive: true }

const STEP_TEXTS = {
  level: 'error',
  begins: 'a background step failed; it will be tried again',
  goesOn: 'a background step still fails',
  over: 'a background step works again',
} as const

/** Options are checked here: what cannot work throws OutboxOptionsError before anything runs. */
export function createOutbox<
  TDb extends DrizzleDatabase,
  TEvents extends EventCatalog | undefined = undefined,
>(options: OutboxOptions<TDb, TEvents>): Outbox<TDb, TEvents> {
  return new Outbox(options)
}

export class Outbox<
  TDb extends DrizzleDatabase = DrizzleDatabase,
  TEvents extends EventCatalog | undefined = undefined,
> implements AsyncDisposable
{
  readonly #options: ResolvedOptions
  readonly #publisher: Publisher
  readonly #lifecycle: Lifecycle
  readonly #store: Store<Executor>
  readonly #units: UnitsOfWork
  readonly #fastPath: FastPath
  readonly #delivery: Delivery
  readonly #settler: Settler
  readonly #poller: Poller
  readonly #circuits: Circuits
  readonly #cleaner: Cleaner
  readonly #health: Health
  readonly #pollLoop: Loop
  readonly #renewLoop: Loop
  readonly #cleanLoop: Loop
  readonly #checkLoop: Loop
  readonly #background = new AsyncResource('aftercommit')
  #starting: Promise<void> | null = null
  #stopping: Promise<void> | null = null

  /** What was given up: list, retry, discard. */
  readonly deadLetters: DeadLetters

  /** @internal Use createOutbox(). */
  constructor(given: OutboxOptions<TDb, TEvents>) {
    const options = resolveOptions(given)
    const { publisher, db } = given
    const lifecycle = new Lifecycle(options.logger)
    const store = postgresStore(db, options)
    const leases = new Leases(store, options.thresholdMs)
    const wakePoller = () => this.#pollLoop.wake()
    const circuits = new Circuits(lifecycle, options.logger, wakePoller)

    const settler = new Settler(store, leases, lifecycle, options, wakePoller)
    const delivery = new Delivery(publisher, options, circuits, leases, settler)
    const fastPath = new FastPath(options, circuits, leases, publisher.perAggregate ?? false, {
      deliver: async (batch) => {
        const delivered = await delivery.deliver(batch, 'immediate')
        if (delivered.unsent.size > 0) void delivered.recorded.then(wakePoller)
        return delivered
      },
      // What waits for an event in the hands of another instance: nobody tells when that one has gone out.
      giveBack: async (leased) => {
        await delivery.giveBack(leased, 'immediate')
        this.#pollLoop.watch()
      },
    })
    const poller = new Poller(store, options, circuits, leases, settler, lifecycle, {
      deliver: (batch) => delivery.deliver(batch, 'fallback'),
      giveBack: (leased) => delivery.giveBack(leased, 'fallback'),
    })
    const units = new UnitsOfWork({
      db,
      store,
      options,
      backlog: new Backlog(store, options.maxBacklog, lifecycle),
      token: randomUUID(),
      wanted: (events) => fastPath.wants(events),
      afterCommit: (events, lease) => this.#afterCommit(events, lease),
    })

    this.#options = options
    this.#publisher = publisher
    this.#lifecycle = lifecycle
    this.#store = store
    this.#units = units
    this.#fastPath = fastPath
    this.#delivery = delivery
    this.#settler = settler
    this.#poller = poller
    this.#circuits = circuits
    this.#cleaner = new Cleaner(store, options)
    this.#health = new Health(store, circuits, lifecycle, options.deadLettersHold)
    this.deadLetters = new DeadLetters(store, options.logger, wakePoller)
    this.#pollLoop = this.#loop('poll', options.pollIntervalMs, async () => {
      return (await this.#pollOnce()) > 0
    })
    this.#renewLoop = this.#loop('renew', leases.renewIntervalMs, async () => {
      fastPath.sweep()
      await leases.renewOnce()
      return false
    })
    this.#cleanLoop = this.#loop('cleanup', options.cleanup?.pauseMs ?? 0, () => {
      return this.#cleaner.runOnce()
    })
    this.#checkLoop = this.#loop('dead-letter check', options.deadLetterCheckMs ?? 0, async () => {
      await this.deadLetters.check()
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
    if (this.#stopping) return this.#stopping.then(() => this.start())
    this.#starting ??= this.#start().catch((error) => {
      this.#starting = null
      throw error
    })
    return this.#starting
  }

  /**
   * Lets sends under way finish within `stopTimeout`, then frees what was not sent, so that another
   * instance takes it at once. Units of work may go on: their events are saved, for whoever is running.
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop().finally(() => {
      this.#starting = null
      this.#stopping = null
    })
    return this.#stopping
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
   * many events it claimed; 0 means that nothing is left to do. Leases are kept up until stop().
   */
  async pollOnce(): Promise<number> {
    this.#renewLoop.start()
    return await this.#pollOnce()
  }

  /** Deletes what is past its retention, now, without waiting for `cleanup`. Answers how many rows. */
  async purge(): Promise<number> {
    let total = 0
    for await (const deleted of this.#cleaner.runRound()) total += deleted
    return total
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
    void this.#warmUp()
    this.#renewLoop.start()
    this.#fastPath.open()
    if (poller) this.#pollLoop.start()
    const { logger, workerId, thresholdMs } = this.#options
    const { name: publisher, settlesWithinMs } = this.#publisher
    logger.info({ publisher, settlesWithinMs, workerId, thresholdMs }, 'outbox started')
  }

  async #stop(): Promise<void> {
    // A start that failed has nothing to stop, and whoever called it has its error.
    await this.#starting?.catch(() => {})
    this.#fastPath.close()
    const { stopTimeoutMs, logger } = this.#options
    const sent = Promise.all([this.#pollLoop.stop(), this.#fastPath.idle()])
    const drained = sent.then(() => this.#delivery.idle()).then(() => this.#settler.idle())
    if ((await raceTimeout(drained, stopTimeoutMs, KEEP_ALIVE)) === 'late') {
      logger.warn({}, 'stopTimeout passed with sends under way; other instances take what is left')
      await raceTimeout(this.#fastPath.release(), CLOSE_TIMEOUT_MS, KEEP_ALIVE)
    }
    // From here on an outcome that cannot be recorded is left to the fallback, and nothing is waited for
    // that could hang: neither a renewal on a dead connection nor a client that says good-bye.
    this.#settler.setPatience(false)
    this.#circuits.stop()
    const loops = [this.#renewLoop, this.#cleanLoop, this.#checkLoop]
    const closed = Promise.all([...loops.map((loop) => loop.stop()), this.#disconnect()])
    await raceTimeout(closed, CLOSE_TIMEOUT_MS, KEEP_ALIVE)
    logger.info({ publisher: this.#publisher.name }, 'outbox stopped')
  }

  #pollOnce(): Promise<number> {
    return this.#health.watchPoll(() => this.#poller.runOnce())
  }

  // In the outbox's own async context: what runs from here on belongs to no request, and a handler must
  // not find itself inside somebody's unit of work.
  #afterCommit(events: readonly SavedEvent[], lease: BirthLease | null): void {
    this.#background.runInAsyncScope(() => {
      if (this.#lifecycle.hasListeners('event:saved')) {
        for (const event of events) this.#lifecycle.tell('event:saved', { event: refOf(event) })
      }
      if (lease) this.#fastPath.accept(events, lease)
      else this.#pollLoop.wake()
    })
  }

  // A broker that is away is no error: events wait in the table, and the circuit tells of sends.
  async #warmUp(): Promise<void> {
    const { logger } = this.#options
    try {
      await this.#publisher.connect?.()
    } catch (error) {
      const { name: publisher } = this.#publisher
      logger.warn({ err: error, publisher }, 'could not connect yet; events wait in the table')
    }
  }

  async #disconnect(): Promise<void> {
    const { logger } = this.#options
    try {
      await this.#publisher.disconnect?.()
    } catch (thrown) {
      const error = toError(thrown)
      logger.warn({ err: error, publisher: this.#publisher.name }, 'could not disconnect cleanly')
      this.#lifecycle.tell('error', { step: 'disconnect', error })
    }
  }

  #loop(step: string, intervalMs: number | (() => number), run: () => Promise<boolean>): Loop {
    const trouble = new Trouble(this.#options.logger, STEP_TEXTS)
    return new Loop({
      intervalMs,
      run,
      onError: (error) => {
        trouble.happened({ err: error, step })
        this.#lifecycle.tell('error', { step, error })
      },
      onRecovered: () => trouble.isOver({ step }),
    })
  }
}
