// Every place on the path where a process can die, by the names of the crash table in
// docs/architecture.md, and what a crash there may cost.

export type CrashStep = {
  /** Which statement or event of the path, and on which side of it. */
  readonly at: string
  readonly when: 'before' | 'after'
  /** What the process does to get there. */
  readonly scene: 'immediate' | 'fallback' | 'hanging send' | 'refusing handler' | 'stop' | 'purge'
  /** Whether the transaction is committed by then. */
  readonly committed: boolean
  /** How often each event may arrive in the end. */
  readonly arrivals: number
}

const before = (at: string, scene: CrashStep['scene'], committed: boolean, arrivals: number) =>
  ({ at, when: 'before', scene, committed, arrivals }) as const
const after = (at: string, scene: CrashStep['scene'], committed: boolean, arrivals: number) =>
  ({ at, when: 'after', scene, committed, arrivals }) as const

export const CRASH_STEPS: Readonly<Record<string, CrashStep>> = {
  'before the save': before('save events', 'immediate', false, 0),
  'after the save': after('save events', 'immediate', false, 0),
  'after COMMIT': after('COMMIT', 'immediate', true, 1),
  'before the send': before('send', 'immediate', true, 1),
  'after the ack': after('send', 'immediate', true, 2),
  'before the record': before('record what was published', 'immediate', true, 2),
  'after the record': after('record what was published', 'immediate', true, 1),
  'before a renewal': before('renew leases', 'hanging send', true, 1),
  'after a renewal': after('renew leases', 'hanging send', true, 1),
  'before a claim': before('claim events', 'fallback', true, 1),
  'after a claim': after('claim events', 'fallback', true, 1),
  'after a claimed send': after('send', 'fallback', true, 2),
  'before a failure is recorded': before('record what failed', 'refusing handler', true, 1),
  'after a failure is recorded': after('record what failed', 'refusing handler', true, 1),
  'before rows are given back': before('record what failed', 'stop', true, 1),
  'after rows are given back': after('record what failed', 'stop', true, 1),
  'before a purge': before('delete old rows', 'purge', true, 1),
  'after a purge': after('delete old rows', 'purge', true, 1),
}
