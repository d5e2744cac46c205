// What the library needs of a database, whatever client is behind it. Drizzle, postgres.js and node-postgres
// each have a file here that does it; nothing else knows a client. Users get the client's own transaction.
import type { SQL } from '../store/sql.ts'

/** How a transaction is to run; what is left out is the database's default. */
export interface TransactionSettings {
  isolationLevel?: 'read uncommitted' | 'read committed' | 'repeatable read' | 'serializable'
  accessMode?: 'read only' | 'read write'
  deferrable?: boolean
}

/**
 * Runs statements of ours. Values come out as the text that Postgres sent, or as the client's parsers made them,
 * which are the user's: whoever reads a number says Number(), and everything else is cast to text by its statement.
 */
export interface Executor {
  query(statement: SQL, options?: QueryOptions): Promise<readonly unknown[]>
}

export interface QueryOptions {
  /**
   * For what is run over and over and plans alike for any data: prepare it on its connection, where the client says
   * that its connections keep what is prepared on them.
   */
  readonly prepare?: boolean
}

/** Whoever hands a transaction to a callback and wants to know what becomes of it. */
export interface TransactionWatch<TTx> {
  /** Comes before every use; when it throws, nothing is sent. */
  readonly use: () => void
  /** Takes the place of the client's own way to nest. */
  readonly savepoint: (work: (tx: TTx) => unknown) => Promise<unknown>
}

export interface OpenTransaction<TTx> extends Executor {
  /** As the client makes it. */
  readonly tx: TTx
  /** The same for a callback that is watched. */
  guarded(watch: TransactionWatch<TTx>): TTx
  /** Rolls back to where it began if the work fails, and hands the failure on. */
  savepoint<T>(work: (inner: OpenTransaction<TTx>) => Promise<T>): Promise<T>
}

export interface Database<TTx> extends Executor {
  /** Whose connections these are: two databases on one client are the same. */
  readonly client: unknown
  /** Resolves after a confirmed COMMIT and not otherwise; if the work fails, it rolls back and fails like it. */
  begin<T>(
    work: (open: OpenTransaction<TTx>) => Promise<T>,
    settings?: TransactionSettings,
  ): Promise<T>
  /** One that a callback was handed, from here or from the client itself. Who began it ends it. */
  join(tx: TTx): OpenTransaction<TTx>
}

/** Any Drizzle Postgres database: postgres-js, node-postgres, PGlite and their like. */
export interface DrizzleDatabase {
  // Written down here instead of taken from Drizzle, so that who does not use it need not install it. Only
  // `any` lets each driver's own transaction type stand here and come out again in TransactionOf.
  // oxlint-disable-next-line typescript/no-explicit-any
  execute(query: any): PromiseLike<unknown>
  transaction(
    // oxlint-disable-next-line typescript/no-explicit-any
    work: (tx: any) => Promise<unknown>,
    config?: TransactionSettings,
  ): Promise<unknown>
}

/** What can be given as `db`. */
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyDatabase = DrizzleDatabase | Database<any>

/** The transaction that a database hands to its callback: the client's own, with the user's own schema in it. */
export type TransactionOf<TDb extends AnyDatabase> =
  TDb extends Database<infer TTx>
    ? TTx
    : TDb extends DrizzleDatabase
      ? Parameters<Parameters<TDb['transaction']>[0]>[0]
      : never
