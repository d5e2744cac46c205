// How our statements run on Knex, and what it returns. Described by shape, so that no user has to install Knex for it. They go
// to the connection itself: Knex would read each `?` as a placeholder, let postProcessResponse change our rows, and print every
// parameter in the message of an error.
import type { Executor } from './driver.ts'
import { type NodePostgresClient, queryNodePostgres } from './node-postgres-query.ts'
import type { Statement } from './sql.ts'

/** A Knex instance or a transaction of it. */
export interface KnexClient {
  // Knex's own client, of whichever version.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly client: any
  readonly isTransaction?: boolean
}

/** What emitIn() accepts of Knex: its transaction, with or without a callback. */
export interface KnexOwn extends KnexClient {
  isCompleted(): boolean
  // oxlint-disable-next-line typescript/no-explicit-any
  savepoint(work: any): any
}

/** The connections of a Knex client. In a transaction there is one, and it is never released. */
export interface KnexConnections {
  readonly driverName?: string
  acquireConnection(): Promise<NodePostgresClient>
  releaseConnection(connection: NodePostgresClient): unknown
}

export async function queryKnex({ client }: KnexClient, statement: Statement): Promise<unknown[]> {
  const connections = client as KnexConnections
  const connection = await connections.acquireConnection()
  try {
    return await queryNodePostgres(connection, statement)
  } finally {
    await connections.releaseConnection(connection)
  }
}

export function isKnex(value: unknown): value is KnexClient {
  if (typeof value !== 'function') return false
  const { client, raw } = value as { client?: Partial<KnexConnections>; raw?: unknown }
  return typeof raw === 'function' && typeof client?.acquireConnection === 'function'
}

/** null: it is a Knex without a transaction, or the transaction has ended. */
export function knexExecutor(knex: KnexClient): Executor | null {
  if (!knex.isTransaction || (knex as KnexOwn).isCompleted()) return null
  return { query: (statement) => queryKnex(knex, statement) }
}
