// The configuration of Debezium's Postgres connector with its outbox event router. Topic, key, value and headers become
// those of the Kafka publishers with the envelope 'headers' (envelope/wire-message.ts), byte by byte. The one difference: the
// application's own headers, which a column holds as JSON, stay one header.
import { FREE_HEADERS } from '../../envelope/wire-message.ts'
import type { CdcNames } from '../../store/outbox/cdc/names.ts'
import type { TableName } from '../../store/table-name.ts'

/** What connects: where, and as which role. */
export interface ConnectorLogin {
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  readonly password: string
}

/** Column and header, in the order of messageHeaders(). */
const HEADERS = [
  ['id', 'event-id'],
  ['event_type', 'event-type'],
  ['seq', 'event-seq'],
  ['lane', 'event-lane'],
  ['aggregate_type', 'aggregate-type'],
  ['aggregate_id', 'aggregate-id'],
  ['cdc_occurred_at', 'occurred-at'],
  ['headers', FREE_HEADERS],
] as const

const TEXT = 'org.apache.kafka.connect.storage.StringConverter'

export function connectorConfig(
  { host, port, database, user, password }: ConnectorLogin,
  table: TableName,
  { publication, slot }: CdcNames,
): Record<string, string> {
  return {
    'connector.class': 'io.debezium.connector.postgresql.PostgresConnector',
    'tasks.max': '1',
    'database.hostname': host,
    'database.port': String(port),
    'database.dbname': database,
    'database.user': user,
    'database.password': password,
    'topic.prefix': slot,
    'plugin.name': 'pgoutput',
    'slot.name': slot,
    'publication.name': publication,
    'publication.autocreate.mode': 'disabled',
    'table.include.list': toPattern(`${table.schema}.${table.name}`),
    // What is in the table has been sent, or is sent by this library.
    'snapshot.mode': 'no_data',
    // Otherwise the slot holds the log of a busy database back while the outbox is quiet. It takes both.
    'lsn.flush.mode': 'connector_and_driver',
    'heartbeat.interval.ms': '5000',
    'tombstones.on.delete': 'false',
    'extended.headers.enabled': 'false',
    'key.converter': TEXT,
    'value.converter': TEXT,
    'header.converter': TEXT,
    transforms: 'outbox,headers',
    'transforms.outbox.type': 'io.debezium.transforms.outbox.EventRouter',
    'transforms.outbox.table.field.event.id': 'id',
    'transforms.outbox.table.field.event.key': 'aggregate_id',
    'transforms.outbox.table.field.event.payload': 'payload',
    'transforms.outbox.route.by.field': 'topic',
    'transforms.outbox.route.topic.replacement': '${routedByValue}',
    'transforms.outbox.table.fields.additional.placement': HEADERS.map(
      ([column, header]) => `${column}:header:${header}`,
    ).join(),
    // The router adds the id of the event under this name as well.
    'transforms.headers.type': 'org.apache.kafka.connect.transforms.DropHeaders',
    'transforms.headers.headers': 'id',
  }
}

/** The list holds patterns, which a comma would divide. A dot matches any character; the publication has one table. */
function toPattern(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9_]/gu, '.')
}
