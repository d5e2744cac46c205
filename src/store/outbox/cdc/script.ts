// The statements that prepare a database for a connector. A person runs them: they need more rights than the outbox has.
import { qualifiedName, quoteName, type TableName } from '../../table-name.ts'
import { cdcNames } from './names.ts'

/** What the connector is to see: inserts of events that are its own. Of a partitioned table, the table itself. */
export function createPublication(table: TableName): string {
  const { publication } = cdcNames('', table)
  return `create publication ${quoteName(publication)} for table ${qualifiedName(table).text}
  where (cdc_occurred_at is not null)
  with (publish = 'insert', publish_via_partition_root = true)`
}

/**
 * `user` is the role of the connector. It gets no right to read or change events: it reads the log. The connectors of several
 * tables may share a role.
 */
export function cdcStatements(table: TableName, user: string): string[] {
  return [
    createPublication(table),
    `do $aftercommit$ begin
  if not exists (select from pg_roles where rolname = '${user.replaceAll("'", "''")}') then
    create role ${quoteName(user)} login replication;
  end if;
end $aftercommit$`,
    `grant usage on schema ${quoteName(table.schema)} to ${quoteName(user)}`,
  ]
}
