// What the library needs from a database, whatever the client. Drizzle, postgres.js and node-postgres each have a file
// here; no other code knows a client. The application's callback receives the client's own transaction.
import type { Statement } from './sql.ts'

/** Settings of a transaction. Those left out take the database's defaults. */
export interface TransactionSettings {
  isolationLevel?: 'read uncommitted' | 'read committed' | 'repeatable read' | 'serializable'
  accessMode?: 'read only' | 'read write'
  deferrable?: boolean
}

/**
 * Runs the library's own statements. Values come out as the text that Postgres sent, or as the client's parsers return
 * them, which users can replace. So code that reads a number calls Number(), and statements cast all else to text.
 */
export interface Executor {
  query(statement: Statement, options?: QueryOptions): Promise<readonly unknown[]>
}

export interface QueryOptions {
  /**
   * For a statement that runs often and has the same plan for any data: prepare it on its connection, if the client
   * knows that its connections keep prepared statements.
   */
  readonly prepare?: boolean
}

/** Lets the caller follow what happens to a transaction that it hands to a callback. */
export interface TransactionWatch<TTx> {
  /** Called before every use. If it throws, nothing is sent. */
  readonly use: () => void
  /** Replaces the client's own way to nest. */
  readonly savepoint: (work: (tx: TTx) => unknown) => Promise<unknown>
}

export interface OpenTransaction<TTx> extends Executor {
  /** The transaction as the client makes it. */
  readonly tx: TTx
  /** The same transaction, watched, for a callback. */
  guarded(watch: TransactionWatch<TTx>): TTx
  /** If the work fails, rolls back to the savepoint and rethrows the error. */
  savepoint<T>(work: (inner: OpenTransaction<TTx>) => Promise<T>): Promise<T>
}

/** Begins a transaction that the library watches, and runs the work in it. */
type Transact = (work: (tx: unknown) => unknown, settings?: TransactionSettings) => Promise<unknown>

/** A transaction that the application began: runs the work inside it, and ends with it. */
export interface Marked {
  run<T>(work: () => T): T
  end(): void
}

/** `TTx` is what a unit of work receives, and `THandle` what the application begins transactions on. */
export interface Database<TTx, THandle = unknown> extends Executor {
  /** The owner of the connections. Two databases on one client have the same one. */
  readonly client: unknown
  /** Resolves only after a confirmed COMMIT. If the work fails, rolls back and rejects with its error. */
  begin<T>(
    work: (open: OpenTransaction<TTx>) => Promise<T>,
    settings?: TransactionSettings,
  ): Promise<T>
  /** Uses a transaction that a callback received, from begin() or from the client itself. Its opener ends it. */
  join(tx: TTx): OpenTransaction<TTx>
  /** The application's own handle, whose transactions are begun by `transact`. */
  watched(transact: Transact): THandle
  /** Calls `mark` for each transaction that the application begins on its own handle. */
  mark(mark: () => Marked): void
}

/** Any Drizzle Postgres database: postgres-js, node-postgres, PGlite and others. */
export interface DrizzleDatabase {
  // Declared here and not imported from Drizzle, so that applications without Drizzle need not install it. Only `any`
  // lets each driver's own transaction type stand here and come out again in TransactionOf.
  // oxlint-disable-next-line typescript/no-explicit-any
  execute(query: any): PromiseLike<unknown>
  transaction(
    // oxlint-disable-next-line typescript/no-explicit-any
    work: (tx: any) => Promise<unknown>,
    config?: TransactionSettings,
  ): Promise<unknown>
}

/** What the option `db` accepts. */
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyDatabase = DrizzleDatabase | Database<any, any>

/** The transaction that a database passes to its callback: the client's own type, with the user's schema. */
export type TransactionOf<TDb extends AnyDatabase> =
  // oxlint-disable-next-line typescript/no-explicit-any
  TDb extends Database<infer TTx, any>
    ? TTx
    : TDb extends DrizzleDatabase
      ? Parameters<Parameters<TDb['transaction']>[0]>[0]
      : never

/** What `outbox.db` is: the application's own handle, watched. */
export type HandleOf<TDb extends AnyDatabase> =
  // oxlint-disable-next-line typescript/no-explicit-any
  TDb extends Database<any, infer THandle> ? THandle : TDb
