// How our statements run on any client of postgres.js, and what it returns.
import type { QueryOptions } from './driver.ts'
import type { Statement } from './sql.ts'

/** A client, a transaction or a reserved connection. */
export interface PostgresJsClient {
  // oxlint-disable-next-line typescript/no-explicit-any
  unsafe(text: string, values?: any, options?: any): any
}

interface Query extends Promise<unknown> {
  raw(): Query
}

export function buildPostgresJs(
  client: PostgresJsClient,
  { text, values }: Statement,
  { prepare = false }: QueryOptions = {},
): Query {
  // postgres.js prepares nothing if it was created with `prepare: false`, as poolers that share connections require.
  // raw() keeps the client's parsers and transforms, which are the user's or Drizzle's, away from our rows.
  return (client.unsafe(text, values, { prepare }) as Query).raw()
}

/** The rows of a query that buildPostgresJs() made, as the text that Postgres sent. */
export async function readPostgresJs(query: Promise<unknown>): Promise<unknown[]> {
  const result = (await query) as readonly (Buffer | null)[][] & {
    readonly columns?: readonly { readonly name: string }[]
  }
  const names = result.columns?.map(({ name }) => name)
  return result.map((row) => {
    return Object.fromEntries(row.map((value, n) => [names![n], value?.toString() ?? null]))
  })
}

export function queryPostgresJs(
  client: PostgresJsClient,
  statement: Statement,
  options?: QueryOptions,
): Promise<unknown[]> {
  return readPostgresJs(buildPostgresJs(client, statement, options))
}
