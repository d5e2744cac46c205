// `aftercommit/schema`: both tables, for users who keep them in their own drizzle-kit schema:
// `export const outbox = outboxTable()`.
export { type EventStatus, outbox, outboxTable } from './outbox/table.ts'
export { inboxTable } from './inbox/table.ts'
