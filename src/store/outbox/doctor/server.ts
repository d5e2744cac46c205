// The server and the role: what else can be seen depends on both. Also its clock.
import { sql } from '../../../drivers/sql.ts'
import { look, type LookContext } from './look.ts'

export interface ServerFound {
  /** Such as 170002. */
  readonly version: number
  readonly clockMs: number
  readonly role: string
  readonly isStandby: boolean
  /** Whether the role sees what other roles' sessions do. */
  readonly seesOthers: boolean
}

export function serverStatement(context: LookContext) {
  return (): Promise<ServerFound> =>
    look(
      context,
      'ask for the clock of the server',
      sql`json_build_object(
        'version', current_setting('server_version_num')::int,
        'clockMs', date_part('epoch', clock_timestamp()) * 1000,
        'role', current_user,
        'isStandby', pg_is_in_recovery(),
        'seesOthers', pg_has_role('pg_read_all_stats', 'usage'))`,
    )
}
