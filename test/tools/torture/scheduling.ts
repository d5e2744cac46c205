// Events that the business schedules, and cancels again: some long before they are due, most of them as that happens. A
// cancellation writes into the journal by its own transaction too. One that has no transaction around it says beforehand that it
// will try: if its answer is lost, both outcomes are right.
import { sql } from 'drizzle-orm'
import type { DrizzleDatabase, NewEvent } from '../../../src/index.ts'
import type { Random } from './random.ts'
import { type Desk, failNested, readRow, type Transaction } from './transaction.ts'

export const SCHEDULING_TABLES = `
  create table cancels (event_id uuid not null);
  create table lone_cancels (event_id uuid not null)`

/** What tells a scheduled event from the others on its way. */
export const SCHEDULED_HEADER = 'scheduled'

export interface Schedule {
  readonly by: 'deliverAt' | 'deliverAfter'
  readonly delayMs: number
  /** Cancelled by the unit that emits it. */
  readonly isTakenBack: boolean
}

export function planSchedule(probability: number, random: Random): Schedule | null {
  if (!random.chance(probability)) return null
  return {
    by: random.chance(0.5) ? 'deliverAt' : 'deliverAfter',
    delayMs: random.pick([
      [5, 0],
      [95, random.between(500, 5_000)],
    ]),
    isTakenBack: random.chance(0.05),
  }
}

/** When the event is due at the earliest, by the database's clock. */
export async function readDue(
  { by, delayMs }: Schedule,
  tx: Transaction,
): Promise<{ dueMs: number; fields: Pick<NewEvent, 'deliverAt' | 'deliverAfter' | 'headers'> }> {
  const now = sql`select floor(extract(epoch from clock_timestamp()) * 1000)::float8 as now`
  const dueMs = Number((await readRow<{ now: number | string }>(tx, now))!.now) + delayMs
  const time = by === 'deliverAt' ? { deliverAt: new Date(dueMs) } : { deliverAfter: delayMs }
  return { dueMs, fields: { ...time, headers: { [SCHEDULED_HEADER]: 'yes' } } }
}

export interface Cancel {
  /** Which one of those that are due next. */
  readonly place: number
  /** Waits until the event is due and so much longer, or calls so much before; null: does not wait. */
  readonly offMs: number | null
}

export function planCancel(random: Random): Cancel {
  return {
    place: random.between(0, 9),
    offMs: random.pick([
      [1, null],
      [4, random.between(-15, 40)],
    ]),
  }
}

interface Target {
  readonly id: string
  readonly inMs: number | string
}

async function aim({ place }: Cancel, tx: Pick<DrizzleDatabase, 'execute'>) {
  return await readRow<Target>(
    tx,
    sql`select id::text, (extract(epoch from deliver_at - clock_timestamp()) * 1000)::float8 as "inMs"
      from outbox where status = 'scheduled' and deliver_at > '-infinity'
      order by deliver_at offset ${place}::int limit 1`,
  )
}

async function waitFor({ inMs }: Target, { offMs }: Cancel, tx: Pick<DrizzleDatabase, 'execute'>) {
  const ms = offMs === null ? 0 : Number(inMs) + offMs
  if (ms > 0) await tx.execute(sql`select pg_sleep(${ms / 1_000}::float8)`)
}

/** Cancels an event as a part of its transaction. */
export async function cancelSome(
  cancel: Cancel,
  { nested, nestedFailure }: { readonly nested: boolean; readonly nestedFailure: boolean },
  tx: Transaction,
  desk: Desk,
): Promise<void> {
  const target = await aim(cancel, tx)
  if (!target) return
  await waitFor(target, cancel, tx)
  const act = (within: Transaction) => cancelIn(within, target.id, desk)
  if (nestedFailure) await failNested(tx, act)
  else if (nested) await tx.transaction(act)
  else await act(tx)
}

export async function cancelIn(tx: Transaction, id: string, desk: Desk): Promise<boolean> {
  const isCancelled = await desk.cancel(tx, id)
  if (isCancelled) await tx.execute(sql`insert into cancels values (${id}::uuid)`)
  return isCancelled
}

/** Cancels an event in no transaction. */
export async function cancelAlone(
  cancel: Cancel,
  db: Pick<DrizzleDatabase, 'execute'>,
  act: (id: string) => Promise<boolean>,
): Promise<void> {
  const target = await aim(cancel, db)
  if (!target) return
  await db.execute(sql`insert into lone_cancels values (${target.id}::uuid)`)
  await waitFor(target, cancel, db)
  if (await act(target.id)) await db.execute(sql`insert into cancels values (${target.id}::uuid)`)
}
