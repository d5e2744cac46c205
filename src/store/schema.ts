// `aftercommit/schema`: the tables, for users who keep them in their own drizzle-kit schema:
// `export const outbox = outboxTable()`.
export {
  type EventStatus,
  outbox,
  outboxInstances,
  outboxInstancesTable,
  outboxPauses,
  outboxPausesTable,
  outboxTable,
} from './outbox/table.ts'
export { inboxTable } from './inbox/table.ts'
