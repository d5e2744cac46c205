// createInbox(): each event handled once per consumer. The record that an event was handled and what the handling
// did are one transaction, so a crash at any point leaves both or nothing, and the next delivery goes by that.
import { backgroundLoops } from '../background.ts'
import type { EventCatalog } from '../catalog.ts'
import { Cleaner } from '../cleaner.ts'
import { databaseOf } from '../drivers/database-of.ts'
import type {
  AnyDatabase,
  Database,
  OpenTransaction,
  TransactionOf,
  TransactionSettings,
} from '../drivers/driver.ts'
import { OutboxOptionsError } from '../errors.ts'
import type { Loop } from '../loop.ts'
import { raceTimeout } from '../race-timeout.ts'
import { openOn, runScoped, secondTransaction } from '../scopes.ts'
import { StartStop } from '../start-stop.ts'
import { isSerializationFailure } from '../store/database.ts'
import { type InboxStore, inboxStore, type Place } from '../store/inbox.ts'
import { type InboxEvent, readEvent } from './event.ts'
import { runAlone, runGuarded } from './guard.ts'
import type { InboxMessage } from './message.ts'
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

/** A message, read. The place is null where order is not kept. */
type Delivered = { readonly event: InboxEvent; readonly place: Place | null }
type AnyWork<T> = (tx: never, event: never) => Promise<T> | T

/** For a batch of cleanup under way, when stop() is called. */
const STOP_TIMEOUT_MS = 2_000

/** Each but the last has met another delivery of the event. */
const MAX_TRIES = 5

const READ_COMMITTED: TransactionSettings = { isolationLevel: 'read committed' }

/** Options are checked here: what cannot work throws OutboxOptionsError before anything runs. */
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
  readonly #cleaner: Cleaner
  readonly #cleanLoop: Loop
  /** Set when order turns out to need it: saying it costs each transaction a statement. */
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
    this.#database = database
    this.#options = options
    this.#store = store
    this.#cleaner = new Cleaner([(limit, after) => store.purge(limit, after)], options.logger)
    this.#cleanLoop = newLoop('inbox cleanup', options.cleanup?.pauseMs ?? 0, () => {
      return this.#cleaner.runOnce()
    })
  }

  /**
   * Handles a message unless its event was handled before: runs `work` in a transaction that also records the
   * event. If `work` throws, all of it rolls back, its error comes out unchanged, and the next delivery handles the
   * event. A delivery of the same event that is under way elsewhere is waited for.
   */
  async once<T>(message: InboxMessage, work: InboxWork<TDb, TEvents, T>): Promise<InboxOutcome<T>> {
    const delivered = this.#read('once', message, work)
    const inside = openOn(this.#database.client)
    if (inside) throw secondTransaction('once()', inside)
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
        // Transactions here begin above read committed, where order cannot be kept, and where a record that had to
        // wait for another delivery fails; a new transaction sees that one.
        if (error instanceof OutboxOptionsError && config === undefined) {
          this.#config = READ_COMMITTED
        } else if (!isSerializationFailure(error) || tries >= MAX_TRIES) throw error
      }
    }
  }

  /**
   * The same inside a transaction that is open already, such as that of withOutbox(): what was consumed, changed and
   * emitted is one. It is a savepoint there: if `work` throws, the record goes with its effects, whatever becomes of
   * the rest; so await one before the next. With `order: 'aggregate'` the transaction has to be read committed.
   */
  async onceIn<T>(
    tx: TransactionOf<TDb>,
    message: InboxMessage,
    work: InboxWork<TDb, TEvents, T>,
  ): Promise<InboxOutcome<T>> {
    const delivered = this.#read('onceIn', message, work)
    const open = this.#database.join(tx)
    const outcome = await runAlone(tx as object, () => {
      return open.savepoint((inner) => this.#handle(inner, delivered, work))
    })
    return this.#told(delivered, outcome)
  }

  /** Creates or updates the inbox table. Safe to call from many processes at once. */
  migrate(): Promise<void> {
    return this.#store.migrate()
  }

  /** Makes sure of the table and starts cleaning up. once() does not need it. */
  start(): Promise<void> {
    return this.#life.start()
  }

  /** Ends the cleanup. once() goes on working; nothing else is held open. */
  stop(): Promise<void> {
    return this.#life.stop()
  }

  /** Deletes what this consumer handled longer ago than its retention, now. Answers how many rows. */
  purge(): Promise<number> {
    return this.#cleaner.purge()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #start(): Promise<void> {
    const { migrate, cleanup } = this.#options
    if (migrate) await this.#store.migrate()
    else await this.#store.verify()
    if (cleanup) this.#cleanLoop.start(cleanup)
  }

  async #stop(): Promise<void> {
    await raceTimeout(this.#cleanLoop.stop(), STOP_TIMEOUT_MS, { keepAlive: true })
  }

  #read(call: string, message: InboxMessage, work: unknown): Delivered {
    if (typeof work !== 'function') {
      throw new OutboxOptionsError(
        `${call}() takes a function behind the message: async (tx, event) => { ... }`,
      )
    }
    const event = readEvent(message)
    return { event, place: this.#options.inOrder ? requirePlace(event) : null }
  }

  async #transact<T>(
    delivered: Delivered,
    config: TransactionSettings | undefined,
    work: AnyWork<T>,
  ): Promise<InboxOutcome<T>> {
    let thrown: { error: unknown } | null = null
    const scope = { kind: 'once()', owner: this, client: this.#database.client } as const
    const transaction = this.#database.begin(async (open) => {
      try {
        return await runScoped(scope, () => this.#handle(open, delivered, work))
      } catch (error) {
        thrown = { error }
        throw error
      }
    }, config)
    // Only a confirmed COMMIT gets past this line. If its outcome is unknown the next delivery finds out.
    const outcome = await transaction.catch((error) => {
      // A failing ROLLBACK must not hide what the work itself threw.
      throw thrown ? thrown.error : error
    })
    return this.#told(delivered, outcome)
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

  #told<T>({ event: { id, type }, place }: Delivered, outcome: InboxOutcome<T>): InboxOutcome<T> {
    const { logger, consumer } = this.#options
    const fields = { consumer, event: { id, type, ...place } }
    if (outcome.outcome === 'duplicate') logger.debug(fields, 'an event was handled before')
    if (outcome.outcome === 'late') {
      logger.warn(fields, 'an event came after a later one of its aggregate and was not handled')
    }
    return outcome
  }
}
