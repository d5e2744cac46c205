// How our statements run on Kysely, and what it returns. Described by shape, so that no user has to install Kysely for it.
import type { Executor } from './driver.ts'
import type { Statement } from './sql.ts'

/** A Kysely or a transaction of it. */
export interface KyselyClient {
  readonly isTransaction: boolean
  // Kysely's own types, of whichever version.
  // oxlint-disable-next-line typescript/no-explicit-any
  executeQuery(query: any): Promise<{ rows: any[] }>
  withoutPlugins(): KyselyClient
}

/** What emitIn() accepts of Kysely: what execute() passes to its callback, or a controlled transaction. */
export interface KyselyOwn extends KyselyClient {
  readonly isTransaction: true
}

/** Without the plugins, which are for the application's rows: CamelCasePlugin would rename our columns. */
export async function queryKysely(
  client: KyselyClient,
  { text, values }: Statement,
): Promise<unknown[]> {
  const query = { kind: 'RawNode', sqlFragments: [text], parameters: [] }
  const queryId = { queryId: 'aftercommit' }
  const compiled = { sql: text, parameters: values, query, queryId }
  return (await client.withoutPlugins().executeQuery(compiled)).rows
}

export function isKysely(value: unknown): value is KyselyClient {
  const { isTransaction, executeQuery, withoutPlugins } = (value ?? {}) as Partial<KyselyClient>
  return (
    typeof isTransaction === 'boolean' &&
    typeof executeQuery === 'function' &&
    typeof withoutPlugins === 'function'
  )
}

/** null: it is a Kysely without a transaction, or the transaction has ended. */
export function kyselyExecutor(client: KyselyClient): Executor | null {
  // Only a controlled transaction has the latter two.
  const { isTransaction, isCommitted, isRolledBack } = client as KyselyClient & {
    isCommitted?: boolean
    isRolledBack?: boolean
  }
  if (!isTransaction || isCommitted || isRolledBack) return null
  return { query: (statement) => queryKysely(client, statement) }
}
