// How our statements run on a pool or a client of node-postgres, and what it returns.
import type { Statement } from './sql.ts'

export interface NodePostgresClient {
  // oxlint-disable-next-line typescript/no-explicit-any
  query(config: any, values?: any): any
}

// Everything as text, because users can replace the parsers of the whole process.
export async function queryNodePostgres(
  client: NodePostgresClient,
  { text, values }: Statement,
): Promise<unknown[]> {
  const config = { text, values: [...values], types: { getTypeParser: () => String } }
  return ((await client.query(config)) as { rows: unknown[] }).rows
}
