// When an event that was not sent is late and a transaction is old, for `aftercommit status`, the doctor and the dashboard
// alike.

/** By default, an unsent event that was saved longer ago than this is trouble. */
export const LATE_MS = 60_000

/** By default, a transaction that has been open for longer is trouble. */
export const OLD_MS = 60_000
