// A COMMIT that waits: whoever inserts into the table `gate` has saved its events, and commits when the
// gate is opened.
import type postgres from 'postgres'
import { defer } from './deferred.ts'
import { waitUntil } from './wait-until.ts'

const LOCK = 4711

export type Gate = {
  /** Resolves when that many sessions wait, at the gate or behind one that waits there. */
  waiting(count: number): Promise<unknown>
  open(): Promise<void>
}

export async function closeGate(sql: postgres.Sql): Promise<Gate> {
  await sql.unsafe(`
    drop table if exists gate;
    create table gate (id int);
    create or replace function wait_at_gate() returns trigger language plpgsql as
      'begin perform pg_advisory_xact_lock(${LOCK}); return null; end';
    create constraint trigger wait after insert on gate deferrable initially deferred
      for each row execute function wait_at_gate()`)
  const [opened, closed] = [defer(), defer()]
  const gatekeeper = sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${LOCK})`
    closed.resolve()
    await opened.promise
  })
  await closed.promise
  return {
    async waiting(count) {
      const waiting = async () => {
        const rows = await sql`
          select 1 from pg_locks l join pg_database d on d.oid = l.database
          where d.datname = current_database() and l.locktype = 'advisory' and not l.granted`
        return rows.length === count
      }
      await waitUntil(waiting, { message: `${count} sessions wait for the gate` })
    },
    async open() {
      opened.resolve()
      await gatekeeper
    },
  }
}
