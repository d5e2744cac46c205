// createInbox(): each consumer handles each event once. The record of an event and the effects of handling it are one
// transaction, so a crash at any point leaves both or neither. The next delivery depends only on the record. Longer than other
// files, because its JSDoc is what users read in their editor.
import { backgroundLoops } from '../runtime/background.ts'
import type { EventCatalog } from '../event/catalog.ts'
import { inBatches, Retention } from '../upkeep/retention.ts'
import { databaseOf } from '../drivers/database-of.ts'
import type {
  AnyDatabase,
  Database,
  OpenTransaction,
  TransactionOf,
  TransactionSettings,
} from '../drivers/driver.ts'
import { OutboxOptionsError } from '../errors.ts'
import type { Loop } from '../runtime/loop.ts'
import { raceTimeout } from '../runtime/race-timeout.ts'
import {
  markTransactions,
  openOn,
  runSurrounded,
  secondTransaction,
} from '../unit-of-work/surroundings.ts'
import { StartStop } from '../runtime/start-stop.ts'
import { isSerializationFailure } from '../store/database.ts'
import { type InboxStore, inboxStore } from '../store/inbox/inbox-store.ts'
import type { Place } from '../store/inbox/record.ts'
import { type InboxEvent, readEvent } from './event.ts'
import { runAlone, runGuarded } from './guard.ts'
import { type InboxMessage, originOf } from './message.ts'
import { type InboxOptions, type ResolvedInboxOptions, resolveInboxOptions } from './options.ts'
import { requirePlace } from './place.ts'
import type { InboxOutcome, InboxWork } from './work.ts'

export { UnreadableMessageError } from '../errors.ts'
export type { InboxEvent } from './event.ts'
export type {
  AmqpMessageLike,
  InboxMessage,
  KafkaMessageLike,
  KafkaPayloadLike,
  PlainMessage,
} from './message.ts'
export type { InboxOptions } from './options.ts'
export type { EventOf, InboxOutcome } from './work.ts'

/** A message that was read. The place is null if the inbox does not keep order. */
type Delivered = { readonly event: InboxEvent; readonly place: Place | null }
type AnyWork<T> = (tx: never, event: never) => Promise<T> | T

/** How long stop() waits for a batch of the cleanup that is under way. */
const STOP_TIMEOUT_MS = 2_000

/** How many transactions once() tries when each fails because another delivery of the event got in its way. */
const MAX_TRIES = 5

const READ_COMMITTED: TransactionSettings = { isolationLevel: 'read committed' }

/** Creates an inbox. Checks the options and throws OutboxOptionsError before anything runs. */
export function createInbox<
  TDb extends AnyDatabase,
  TEvents extends EventCatalog | undefined = undefined,
>(options: InboxOptions<TDb, TEvents>): Inbox<TDb, TEvents> {
  return new Inbox(options)
}

export class Inbox<
  TDb extends AnyDatabase = AnyDatabase,
  TEvents extends EventCatalog | undefined = undefined,
> implements AsyncDisposable
{
  readonly #database: Database<unknown>
  readonly #options: ResolvedInboxOptions
  readonly #store: InboxStore
  readonly #retention: Retention
  readonly #cleanLoop: Loop
  /** Set only when order turns out to need it, because it costs each transaction a statement. */
  #config: TransactionSettings | undefined
  readonly #life = new StartStop(
    () => this.#start(),
    () => this.#stop(),
  )

  /** @internal Use createInbox(). */
  constructor(given: InboxOptions<TDb, TEvents>) {
    const options = resolveInboxOptions(given)
    const database = databaseOf(given.db)
    const store = inboxStore(database, options)
    const newLoop = backgroundLoops(options.logger)
    markTransactions(database)
    this.#database = database
    this.#options = options
    this.#store = store
    const newRound = () => inBatches((limit, after) => store.purge(limit, after))
    this.#retention = new Retention(newRound, options.logger)
    this.#cleanLoop = newLoop('inbox cleanup', options.cleanup?.pauseMs ?? 0, () => {
      return this.#retention.runOnce()
    })
  }

  /**
   * Handles a message unless its event was handled before: runs `work` in a transaction that also records the
   * event. If `work` throws, everything rolls back, once() rethrows the error unchanged, and the next delivery handles
   * the event. If another delivery of the same event is under way, once() waits for it.
   */
  async once<T>(message: InboxMessage, work: InboxWork<TDb, TEvents, T>): Promise<InboxOutcome<T>> {
    const delivered = this.#read('once', message, work)
    const inside = openOn(this.#database.client)
    if (inside) throw secondTransaction('once()', inside)
    return await this.#watched(message, delivered, () => this.#retry(delivered, work))
  }

  /**
   * Like once(), but inside a transaction that is already open, such as that of withOutbox(): the record, the changes
   * and the emitted events commit together. It runs in a savepoint: if `work` throws, the record is undone with its
   * effects, whether or not the rest commits. Await each call before the next. With `order: 'aggregate'`, the
   * transaction must be read committed.
   */
  async onceIn<T>(
    tx: TransactionOf<TDb>,
    message: InboxMessage,
    work: InboxWork<TDb, TEvents, T>,
  ): Promise<InboxOutcome<T>> {
    const delivered = this.#read('onceIn', message, work)
    const open = this.#database.join(tx)
    return await this.#watched(message, delivered, async () => {
      const outcome = await runAlone(tx as object, () => {
        return open.savepoint((inner) => this.#handle(inner, delivered, work))
      })
      return this.#logged(delivered, outcome)
    })
  }

  /** Creates or updates the inbox table. Safe to call from many processes at once. */
  migrate(): Promise<void> {
    return this.#store.migrate()
  }

  /** Checks the table and starts the cleanup. once() also works without it. */
  start(): Promise<void> {
    return this.#life.start()
  }

  /** Stops the cleanup. once() continues to work. */
  stop(): Promise<void> {
    return this.#life.stop()
  }

  /** Deletes this consumer's rows that are past their retention now. Returns how many rows. */
  purge(): Promise<number> {
    return this.#retention.purge()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #start(): Promise<void> {
    const { migrate, cleanup, logger } = this.#options
    if (migrate) await this.#store.migrate()
    const newer = await this.#store.verify()
    if (newer.length > 0) {
      logger.warn(
        { migrations: newer },
        'a newer version has migrated the inbox table; this version works with it, but should be updated',
      )
    }
    if (cleanup) this.#cleanLoop.start(cleanup)
  }

  async #stop(): Promise<void> {
    await raceTimeout(this.#cleanLoop.stop(), STOP_TIMEOUT_MS, { keepAlive: true })
  }

  #read(call: string, message: InboxMessage, work: unknown): Delivered {
    if (typeof work !== 'function') {
      throw new OutboxOptionsError(
        `${call}() takes a function after the message: async (tx, event) => { ... }`,
      )
    }
    const event = readEvent(message)
    return { event, place: this.#options.inOrder ? requirePlace(event) : null }
  }

  #watched<T>(
    message: InboxMessage,
    { event }: Delivered,
    handle: () => Promise<InboxOutcome<T>>,
  ): Promise<InboxOutcome<T>> {
    const { telemetry, consumer } = this.#options
    if (!telemetry) return handle()
    const { id, type, traceparent, headers } = event
    const about = { id, type, traceparent, headers, consumer, ...originOf(message) }
    return telemetry.process(about, handle)
  }

  async #retry<T>(
    delivered: Delivered,
    work: InboxWork<TDb, TEvents, T>,
  ): Promise<InboxOutcome<T>> {
    for (let tries = 1; ; tries += 1) {
      const config = this.#config
      let begun = false
      try {
        return await this.#transact(delivered, config, (tx, given) => {
          begun = true
          return work(tx, given)
        })
      } catch (error) {
        if (begun) throw error
        // This database begins transactions above read committed. There, order cannot be kept, and a record that had
        // to wait for another delivery fails. A new transaction sees that delivery.
        if (error instanceof OutboxOptionsError && config === undefined) {
          this.#config = READ_COMMITTED
        } else if (!isSerializationFailure(error) || tries >= MAX_TRIES) throw error
      }
    }
  }

  async #transact<T>(
    delivered: Delivered,
    config: TransactionSettings | undefined,
    work: AnyWork<T>,
  ): Promise<InboxOutcome<T>> {
    let thrown: { error: unknown } | null = null
    const about = { kind: 'once()', owner: this, client: this.#database.client } as const
    const transaction = this.#database.begin(async (open) => {
      try {
        return await runSurrounded(about, () => this.#handle(open, delivered, work))
      } catch (error) {
        thrown = { error }
        throw error
      }
    }, config)
    // Only a confirmed COMMIT gets past this line. If its outcome is unknown, the next delivery finds out.
    const outcome = await transaction.catch((error) => {
      // A failed ROLLBACK must not hide the error that the work threw.
      throw thrown ? thrown.error : error
    })
    return this.#logged(delivered, outcome)
  }

  async #handle<T>(
    open: OpenTransaction<unknown>,
    { event, place }: Delivered,
    work: AnyWork<T>,
  ): Promise<InboxOutcome<T>> {
    const recorded = await this.#store.record(open, event.id, place)
    if (recorded !== 'first') return { outcome: recorded }
    const result = await runGuarded(open, (tx) => work(tx as never, event as never))
    await this.#store.confirm(open)
    return { outcome: 'handled', result }
  }

  #logged<T>({ event: { id, type }, place }: Delivered, outcome: InboxOutcome<T>): InboxOutcome<T> {
    const { logger, consumer } = this.#options
    const fields = { consumer, event: { id, type, ...place } }
    if (outcome.outcome === 'duplicate')
      logger.debug(fields, 'skipped an event that was handled before')
    if (outcome.outcome === 'late') {
      logger.warn(
        fields,
        'skipped an event that came after a later event of its aggregate; it was not handled and is lost once the message is acknowledged',
      )
    }
    return outcome
  }
}
