// What a unit of work receives on Kysely: a Transaction of Kysely's own class, on an executor that checks each query when
// it is sent. Builders keep the executor that they were made with, so nothing gets past it.
import {
  type AccessMode,
  type DatabaseConnection,
  type IsolationLevel,
  type KyselyPlugin,
  type KyselyProps,
  type QueryExecutor,
  Transaction,
  TransactionBuilder,
} from 'kysely'
import type { TransactionSettings, TransactionWatch } from './driver.ts'
import { controlError, refuseControl } from './transaction-text.ts'

type Watch<DB> = TransactionWatch<KyselyTransaction<DB>>

/** What was changed on a database or a transaction with withSchema() and the like, for the transactions inside it. */
export type Derive = <T extends object>(from: T) => T
const asItIs: Derive = (from) => from

/** What a unit of work receives: Kysely's Transaction, and a way to nest. */
export class KyselyTransaction<DB> extends Transaction<DB> {
  readonly #inner: Transaction<DB>
  readonly #watch: Watch<DB>
  readonly #derive: Derive

  constructor(inner: Transaction<DB>, watch: Watch<DB>, derive = asItIs) {
    const executor = guardExecutor(inner.getExecutor(), watch.use)
    // Everything that would use the other three is replaced below.
    super({ executor, config: {}, driver: {}, dialect: {} } as unknown as KyselyProps)
    this.#inner = inner
    this.#watch = watch
    this.#derive = derive
  }

  override get introspection() {
    return this.#inner.introspection
  }

  /** Runs the work in a savepoint. If it throws, its changes and its events are undone, and the error is rethrown. */
  async savepoint<T>(work: (tx: KyselyTransaction<DB>) => Promise<T> | T): Promise<T> {
    return (await this.#watch.savepoint((tx) => work(this.#derive(tx)))) as T
  }

  override startTransaction(): never {
    throw controlError('BEGIN')
  }

  override withPlugin(plugin: KyselyPlugin): KyselyTransaction<DB> {
    return this.#derived('withPlugin', plugin)
  }

  override withoutPlugins(): KyselyTransaction<DB> {
    return this.#derived('withoutPlugins')
  }

  override withSchema(schema: string): KyselyTransaction<DB> {
    return this.#derived('withSchema', schema)
  }

  #derived(method: string, ...given: unknown[]): KyselyTransaction<DB> {
    const derive: Derive = (from) => callOn(this.#derive(from), method, given)
    return new KyselyTransaction(callOn(this.#inner, method, given), this.#watch, derive)
  }
}

export function callOn<T extends object>(target: T, method: string, given: unknown[]): T {
  return Reflect.apply(Reflect.get(target, method) as () => T, target, given)
}

type Begin<DB> = (
  work: (tx: Transaction<DB>) => unknown,
  settings: TransactionSettings,
) => Promise<unknown>

/** The builder of outbox.db, whose transactions we begin. */
export class WatchedBuilder<DB> extends TransactionBuilder<DB> {
  readonly #begin: Begin<DB>
  readonly #settings: TransactionSettings

  constructor(begin: Begin<DB>, settings: TransactionSettings = {}) {
    super({} as never)
    this.#begin = begin
    this.#settings = settings
  }

  override setAccessMode(accessMode: AccessMode): TransactionBuilder<DB> {
    return new WatchedBuilder(this.#begin, { ...this.#settings, accessMode })
  }

  override setIsolationLevel(isolationLevel: IsolationLevel): TransactionBuilder<DB> {
    // 'snapshot', which Postgres does not have, is refused where the settings are checked.
    const settings = { ...this.#settings, isolationLevel } as TransactionSettings
    return new WatchedBuilder(this.#begin, settings)
  }

  override async execute<T>(work: (tx: Transaction<DB>) => Promise<T>): Promise<T> {
    return (await this.#begin(work, this.#settings)) as T
  }
}

// Kysely lets queries of one transaction wait for each other, so the check that counts is where a query gets the
// connection. The one before it explains the mistake in our words, not in Kysely's.
function guardExecutor(inner: QueryExecutor, check: () => void): QueryExecutor {
  const provideConnection: QueryExecutor['provideConnection'] = async (consumer, ...options) => {
    check()
    const checked = (connection: DatabaseConnection) => consumer(guardConnection(connection, check))
    return await inner.provideConnection(checked, ...options)
  }
  const checked = inner.withConnectionProvider({ provideConnection })
  const executeQuery: QueryExecutor['executeQuery'] = async (...given) => {
    check()
    return await checked.executeQuery(...given)
  }
  const stream: QueryExecutor['stream'] = async function* (...given) {
    check()
    yield* checked.stream(...given) as AsyncIterableIterator<never>
  }
  const own = { provideConnection, executeQuery, stream }
  return new Proxy(inner, {
    get(target, property) {
      if (Object.hasOwn(own, property)) return own[property as keyof typeof own]
      const value: unknown = Reflect.get(target, property, target)
      if (typeof value !== 'function') return value
      if (!String(property).startsWith('with')) return value.bind(target) as unknown
      return (...given: unknown[]) =>
        guardExecutor(Reflect.apply(value, target, given) as QueryExecutor, check)
    },
  })
}

function guardConnection(connection: DatabaseConnection, check: () => void): DatabaseConnection {
  return {
    async executeQuery(query, ...options) {
      check()
      refuseControl(query.sql)
      return await connection.executeQuery(query, ...options)
    },
    async *streamQuery(query, ...options) {
      check()
      refuseControl(query.sql)
      yield* connection.streamQuery<never>(query, ...options)
    },
  }
}
