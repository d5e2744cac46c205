// `aftercommit/cdc`: what has to be set up for relay: 'cdc'. Two functions that return text and run nothing.
import { rejectUnknown, requireCount, requireName } from '../../checks/checks.ts'
import { OutboxOptionsError } from '../../errors.ts'
import { cdcNames } from '../../store/outbox/cdc/names.ts'
import { cdcStatements } from '../../store/outbox/cdc/script.ts'
import { checkName } from '../../store/table-name.ts'
import { connectorConfig } from './connector.ts'

export interface CdcConnectorOptions extends CdcSqlOptions {
  /** The host of the database, as the Kafka Connect worker reaches it. Not a pooler: it must speak the replication protocol. */
  host: string
  /** @default 5432 */
  port?: number
  /** The name of the database. */
  database: string
  /** The password, or where the worker finds it. @default '${env:AFTERCOMMIT_CDC_PASSWORD}' */
  password?: string
}

export interface CdcSqlOptions {
  /** The role that the connector logs in as. @default 'aftercommit_cdc' */
  user?: string
  /** The schema of the outbox table. @default 'public' */
  schema?: string
  /** The name of the outbox table. @default 'outbox' */
  table?: string
}

/** What the REST interface of Kafka Connect takes. */
export interface CdcConnector {
  readonly name: string
  readonly config: Readonly<Record<string, string>>
}

/** A worker with `config.providers=env` replaces it by that variable. */
const PASSWORD = '${env:AFTERCOMMIT_CDC_PASSWORD}'
const USER = 'aftercommit_cdc'

/** The connector for the table of an outbox with relay: 'cdc'. */
export function cdcConnector(options: CdcConnectorOptions): CdcConnector {
  const known = ['host', 'port', 'database', 'user', 'password', 'schema', 'table']
  rejectUnknown('cdcConnector()', options, known)
  const { port = 5432, user = USER, password = PASSWORD } = options
  const table = tableOf(options)
  const database = requireName('database', options.database)
  const names = cdcNames(database, table)
  const login = {
    host: requireName('host', options.host),
    port: requireCount('port', port, 65_535),
    database,
    user: requireName('user', user),
    password,
  }
  return { name: names.slot, config: connectorConfig(login, table, names) }
}

/** The statements that prepare the database for it, for a role that may create publications and roles. */
export function cdcSql(options: CdcSqlOptions = {}): string {
  rejectUnknown('cdcSql()', options, ['user', 'schema', 'table'])
  const { user = USER } = options
  const statements = cdcStatements(tableOf(options), requireName('user', user))
  return statements.map((statement) => `${statement};\n`).join('')
}

function tableOf({ schema = 'public', table = 'outbox' }: CdcSqlOptions) {
  // Debezium does not quote such a name, and its task fails at the first event.
  if (schema.includes('"') || table.includes('"')) {
    throw new OutboxOptionsError(
      'Debezium cannot relay a table whose schema or name contains a double quote; rename it',
    )
  }
  return { schema: checkName('schema', schema), name: checkName('table', table) }
}
