// The business that is tortured: accounts that count what happens to them. Each event is written into a
// journal by the same transaction that emits it; the journal is the oracle's truth, and the outbox has no
// hand in it. Units lock the accounts they write to, except for the open ones: there several units save at
// the same time and commit in any order, among units that do lock the account.
import { sql } from 'drizzle-orm'
import type { Random } from './random.ts'
import {
  type Cancel,
  cancelIn,
  cancelSome,
  planCancel,
  planSchedule,
  readDue,
  type Schedule,
  SCHEDULING_TABLES,
} from './scheduling.ts'
import { changeItsMind, type Desk, failNested, readRow, type Transaction } from './transaction.ts'

const ACCOUNTS = 60
const OPEN_ACCOUNTS = 24
export const MOST_IN_BURST = 6
export const TOPICS = ['torture-a', 'torture-b'] as const

export const TABLES = `
  create table accounts (id text primary key, n bigint not null default 0);
  insert into accounts (id) select 'account-' || n from generate_series(1, ${ACCOUNTS}) n;
  insert into accounts (id) select 'open-' || n from generate_series(1, ${OPEN_ACCOUNTS}) n;
  create sequence open_numbers;
  create table journal (event_id uuid primary key, account text not null, n bigint not null,
    payload text not null, note text not null, locked boolean not null, snapshot pg_snapshot not null,
    due_ms float8, xid xid8 not null default pg_current_xact_id());
  create table holds (ms int not null);
  create function hold_commit() returns trigger language plpgsql as
    'begin perform pg_sleep(new.ms / 1000.0); return null; end';
  create constraint trigger hold after insert on holds deferrable initially deferred
    for each row execute function hold_commit();
  ${SCHEDULING_TABLES}`

export const isOpen = (account: string) => account.startsWith('open-')

export const topicOf = (account: string) => TOPICS[Number(account.split('-')[1]) % 2]!

/** Who begins the transaction: the outbox, or the application, on the watched handle or on its own. */
type Way = 'withOutbox' | 'outbox.db' | 'emitIn'

const drawWay = (random: Random): Way =>
  random.pick([
    [60, 'withOutbox'],
    [20, 'outbox.db'],
    [20, 'emitIn'],
  ])

export interface Unit {
  readonly way: Way
  readonly accounts: readonly string[]
  /** Whether it locks those of its accounts that are open; the others it always locks. */
  readonly locks: boolean
  /** For each account. */
  readonly events: number
  readonly size: number
  readonly sleepMs: number
  /** How long its COMMIT takes, after the save. */
  readonly heldMs: number
  /** How long the answer to its COMMIT takes, when others see its rows already. */
  readonly answeredAfterMs: number
  readonly nestedFailure: boolean
  readonly nested: boolean
  readonly changesItsMind: boolean
  /** One more event for each account, ahead of the others, that is due later. */
  readonly schedule: Schedule | null
  /** Of what others have scheduled. */
  readonly cancel: Cancel | null
}

/** One unit of work: some accounts, some events each; it may be slow, nest, or change its mind. */
export function planUnit(random: Random): Unit {
  const accounts = new Set<string>()
  for (let n = random.between(1, 3); n > 0; n -= 1) {
    accounts.add(`account-${random.between(1, ACCOUNTS)}`)
  }
  return {
    way: drawWay(random),
    // Mostly in one order; where not, two units may deadlock, and the unit of work is run again.
    accounts: random.chance(0.9) ? [...accounts].toSorted() : [...accounts],
    events: random.between(1, 4),
    size: random.pick([
      [90, 20],
      [9, 2_000],
      [1, 60_000],
    ]),
    sleepMs: random.pick([
      [88, 0],
      [10, random.between(10, 200)],
      // Longer than the threshold: the row must not be old when it is born.
      [2, 2_500],
    ]),
    locks: true,
    heldMs: 0,
    answeredAfterMs: random.pick([
      [95, 0],
      [5, random.between(5, 500)],
    ]),
    nestedFailure: random.chance(0.1),
    nested: random.chance(0.1),
    changesItsMind: random.chance(0.1),
    schedule: planSchedule(0.4, random),
    cancel: random.chance(0.1) ? { ...planCancel(random), offMs: null } : null,
  }
}

/** Cancels an event that others have scheduled, and does nothing else. */
export function planCancelling(random: Random): Unit & { readonly cancel: Cancel } {
  return {
    way: drawWay(random),
    accounts: [],
    locks: true,
    events: 0,
    size: 0,
    sleepMs: random.pick([
      [80, 0],
      [20, random.between(10, 1_500)],
    ]),
    heldMs: random.pick([
      [90, 0],
      [10, random.between(10, 500)],
    ]),
    answeredAfterMs: 0,
    nestedFailure: random.chance(0.1),
    nested: random.chance(0.1),
    changesItsMind: random.chance(0.2),
    schedule: null,
    cancel: planCancel(random),
  }
}

export interface BurstUnit {
  readonly unit: Unit
  /** How long after the beginning of the burst. */
  readonly afterMs: number
  /** Saved by an instance that sends nothing: the fallback has to find its events. */
  readonly isAbandoned: boolean
}

/**
 * Units of one instance that meet on one open account. One of the first is slow to commit, so that others save,
 * commit and begin around it. Then the account has a rest: where events never stop, all of them are left to the
 * fallback, which takes them in order.
 */
export function planBurst(random: Random): BurstUnit[] {
  const account = `open-${random.between(1, OPEN_ACCOUNTS)}`
  const plan = (afterMs: number, late: number, isAbandoned = false): BurstUnit => ({
    unit: planOpenUnit(account, late, random),
    afterMs,
    isAbandoned,
  })
  const others = Array.from({ length: random.between(2, MOST_IN_BURST - 2) }, () =>
    plan(random.between(10, 1_100), 0.3),
  )
  const abandoned = random.chance(0.3) ? [plan(0, 0, true)] : []
  return [...abandoned, plan(random.between(0, 100), 0.9), ...others]
}

/** `late`: how likely its COMMIT takes long, and how likely the answer to it does. */
function planOpenUnit(account: string, late: number, random: Random): Unit {
  const accounts = new Set([account])
  if (random.chance(0.1)) accounts.add(`open-${random.between(1, OPEN_ACCOUNTS)}`)
  const drawMs = () =>
    random.pick([
      [1 - late, 0],
      [late * 0.97, random.between(20, 800)],
      // Longer than the threshold: the row is old when others first see it, or its lease has ended.
      [late * 0.03, 2_500],
    ])
  return {
    way: drawWay(random),
    accounts: [...accounts].toSorted(),
    locks: random.chance(0.3),
    events: random.between(1, 2),
    size: 20,
    sleepMs: random.pick([
      [90, 0],
      [10, random.between(10, 100)],
    ]),
    heldMs: drawMs(),
    answeredAfterMs: drawMs(),
    nestedFailure: random.chance(0.05),
    nested: random.chance(0.05),
    changesItsMind: random.chance(0.1),
    schedule: planSchedule(0.2, random),
    cancel: null,
  }
}

interface Begun extends Unit {
  /** What had committed when it began. */
  readonly snapshot: string
}

export async function runUnit(planned: Unit, tx: Transaction, desk: Desk): Promise<void> {
  const { snapshot } = (await readRow<{ snapshot: string }>(
    tx,
    sql`select pg_current_snapshot()::text as snapshot`,
  ))!
  const unit = { ...planned, snapshot }
  for (const account of unit.accounts) {
    if (unit.nestedFailure) await failNested(tx, (inner) => postAll(account, unit, inner, desk))
    if (unit.nested) await tx.transaction((inner) => postAll(account, unit, inner, desk))
    else await postAll(account, unit, tx, desk)
  }
  if (unit.cancel) await cancelSome(unit.cancel, unit, tx, desk)
  if (unit.heldMs > 0) await tx.execute(sql`insert into holds values (${unit.heldMs}::int)`)
  if (unit.sleepMs > 0) await tx.execute(sql`select pg_sleep(${unit.sleepMs / 1_000}::float8)`)
  if (unit.changesItsMind) changeItsMind()
}

async function postAll(account: string, unit: Begun, tx: Transaction, desk: Desk): Promise<void> {
  const { schedule } = unit
  if (schedule) {
    const id = await post(account, unit, tx, desk, schedule)
    const isGone = !schedule.isTakenBack || (await cancelIn(tx, id, desk))
    if (!isGone) throw new Error('what a unit of work has scheduled, it can cancel')
  }
  for (let left = unit.events; left > 0; left -= 1) await post(account, unit, tx, desk)
}

/** Returns the id of the event. */
async function post(
  account: string,
  unit: Begun,
  tx: Transaction,
  desk: Desk,
  schedule: Schedule | null = null,
): Promise<string> {
  const locked = unit.locks || !isOpen(account)
  const n = await count(account, locked, tx)
  const payload = { account, n, text: 'é😀\n"\\'.repeat(Math.ceil(unit.size / 5)), exact: 0.1 }
  const note = `${account} № ${n}`
  const { dueMs, fields } = schedule ? await readDue(schedule, tx) : NOT_SCHEDULED
  const eventId = await desk.emit(tx, {
    type: n % 2 ? 'Debited' : 'Credited',
    aggregateType: 'account',
    aggregateId: account,
    topic: topicOf(account),
    payload,
    correlationId: note,
    ...fields,
    headers: { ...fields.headers, note },
  })
  await tx.execute(sql`insert into journal values (${eventId}::uuid, ${account}, ${n}::bigint,
    ${JSON.stringify(payload)}, ${note}, ${locked}::boolean, ${unit.snapshot}::text::pg_snapshot,
    ${dueMs}::float8)`)
  return eventId
}

const NOT_SCHEDULED = { dueMs: null, fields: { headers: {} } }

/** Rises within a unit, and from one unit to the next among those that lock the account. */
async function count(account: string, locked: boolean, tx: Transaction): Promise<number> {
  if (isOpen(account) && locked) {
    await tx.execute(sql`select from accounts where id = ${account} for update`)
  }
  const { n } = (await readRow<{ n: string }>(
    tx,
    isOpen(account)
      ? sql`select nextval('open_numbers')::text as n`
      : sql`update accounts set n = n + 1 where id = ${account} returning n::text`,
  ))!
  return Number(n)
}
