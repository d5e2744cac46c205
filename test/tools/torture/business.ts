// The business that is tortured: accounts that count what happens to them. Each event is written into a
// journal by the same transaction that emits it; the journal is the oracle's truth, and the outbox has no
// hand in it.
import { sql } from 'drizzle-orm'
import type { DrizzleDatabase, Emit } from '../../src/index.ts'
import type { Random } from './random.ts'

const ACCOUNTS = 60
export const TOPICS = ['torture-a', 'torture-b'] as const

export const TABLES = `
  create table accounts (id text primary key, n bigint not null default 0);
  create table journal (event_id uuid primary key, account text not null, n bigint not null,
    payload text not null, note text not null);
  insert into accounts (id) select 'account-' || n from generate_series(1, ${ACCOUNTS}) n`

/** A transaction that can nest, whatever the driver. */
export interface Transaction extends Pick<DrizzleDatabase, 'execute'> {
  transaction(work: (tx: Transaction) => Promise<unknown>): Promise<unknown>
}

class ChangedItsMind extends Error {}

export const isPlanned = (error: unknown) => error instanceof ChangedItsMind

export const topicOf = (account: string) => TOPICS[account.length % 2]!

/** One unit of work: some accounts, some events each; it may be slow, nest, or change its mind. */
export function planUnit(random: Random) {
  const accounts = new Set<string>()
  for (let n = random.between(1, 3); n > 0; n -= 1) {
    accounts.add(`account-${random.between(1, ACCOUNTS)}`)
  }
  return {
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
    nestedFailure: random.chance(0.1),
    nested: random.chance(0.1),
    changesItsMind: random.chance(0.1),
  }
}

export type Unit = ReturnType<typeof planUnit>

export async function runUnit(unit: Unit, tx: Transaction, emit: Emit): Promise<void> {
  for (const account of unit.accounts) {
    if (unit.nestedFailure) await failNested(account, unit, tx, emit)
    if (unit.nested) await tx.transaction((inner) => post(account, unit, inner, emit))
    else await post(account, unit, tx, emit)
  }
  if (unit.sleepMs > 0) await tx.execute(sql`select pg_sleep(${unit.sleepMs / 1_000}::float8)`)
  if (unit.changesItsMind) throw new ChangedItsMind()
}

async function failNested(account: string, unit: Unit, tx: Transaction, emit: Emit): Promise<void> {
  const failing = tx.transaction(async (inner) => {
    await post(account, unit, inner, emit)
    throw new ChangedItsMind()
  })
  await failing.catch((error: unknown) => {
    if (!isPlanned(error)) throw error
  })
}

async function post(account: string, unit: Unit, tx: Transaction, emit: Emit): Promise<void> {
  for (let left = unit.events; left > 0; left -= 1) {
    const result = await tx.execute(
      sql`update accounts set n = n + 1 where id = ${account} returning n::text`,
    )
    const rows = (Array.isArray(result) ? result : (result as { rows: unknown[] }).rows) as {
      n: string
    }[]
    const n = Number(rows[0]!.n)
    const payload = { account, n, text: 'é😀\n"\\'.repeat(Math.ceil(unit.size / 5)), exact: 0.1 }
    const note = `${account} № ${n}`
    const eventId = emit({
      type: n % 2 ? 'Debited' : 'Credited',
      aggregateType: 'account',
      aggregateId: account,
      topic: topicOf(account),
      payload,
      correlationId: note,
      headers: { note },
    })
    await tx.execute(sql`insert into journal values (${eventId}::uuid, ${account}, ${n}::bigint,
      ${JSON.stringify(payload)}, ${note})`)
  }
}
