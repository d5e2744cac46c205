// The database that the command has opened, as the dashboard needs it. There is no outbox: other processes learn of a retry
// or a resume as they do of those by other commands.
import type { Retention } from '../../dashboard/acts.ts'
import { type DashboardSource, openSource } from '../../dashboard/source.ts'
import { Bell } from '../../runtime/bell.ts'
import type { Logger } from '../../runtime/logger.ts'
import { type Session, storeRules } from '../context.ts'

export function openedSource(
  { opened, table }: Session,
  retention: Retention | null,
  logger: Logger,
): DashboardSource {
  const pauses = { learn: async () => {} }
  return openSource(opened.db, storeRules(table), { retention, logger, bell: new Bell(), pauses })
}
