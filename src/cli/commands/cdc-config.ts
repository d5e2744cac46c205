// aftercommit cdc-config: prints the connector for relay: 'cdc', or the statements that prepare the database for it.
import { cdcConnector, cdcSql } from '../../publishers/debezium/cdc.ts'
import { usageError } from '../cli-error.ts'
import type { AddCommand } from '../command.ts'
import { databaseUrlProblem } from '../database-url.ts'

interface Options {
  readonly host?: string
  readonly user: string
  readonly sql?: boolean
}

export const cdcConfigCommand: AddCommand = (program, run) => {
  program
    .command('cdc-config')
    .description("print the Kafka Connect connector for relay: 'cdc'; needs no connection")
    .option('--host <name>', 'the database as Kafka Connect reaches it (default: as in the URL)')
    .option('--user <role>', 'the role that the connector logs in as', 'aftercommit_cdc')
    .option('--sql', 'print the statements that prepare the database instead')
    .action(
      run(async (context, { host, user, sql }: Options) => {
        const { out } = context
        const { schema, name: table } = await context.table()
        if (sql) {
          const script = cdcSql({ user, schema, table })
          out.document({ sql: script }, () => script.trimEnd())
          return
        }
        const server = readUrl(await context.databaseUrl())
        const connector = cdcConnector({ ...server, ...(host && { host }), user, schema, table })
        out.document(connector, () => JSON.stringify(connector, null, 2))
      }),
    )
}

/** Where the database is. Neither user nor password: the connector has its own. */
function readUrl(url: string | null) {
  if (url === null) {
    throw usageError(
      'no database; set DATABASE_URL, pass --database-url, or set databaseUrl in aftercommit.config.ts',
    )
  }
  const problem = databaseUrlProblem(url)
  if (problem) throw usageError(problem)
  const { hostname, port, pathname } = new URL(url)
  const database = decodeURIComponent(pathname.slice(1))
  return { host: hostname, ...(port && { port: Number(port) }), database }
}
