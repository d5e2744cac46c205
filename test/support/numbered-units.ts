// Units of work on one aggregate, numbered, each with an event and a row of the business. Whatever happens to the database,
// in the end the three agree: what is committed, what the table holds, and what arrived.
import type postgres from 'postgres'
import { createOutbox, type Outbox, type OutboxOptions } from '../../src/index.ts'
import { handlersPublisher } from '../../src/publishers/handlers.ts'
import { newEvent } from './doubles/sample-events.ts'
import { uniqueName } from './doubles/unique-name.ts'
import type { TestDriver } from './drivers.ts'
import { waitUntil } from './timing/wait-until.ts'

export interface NumberedUnits {
  readonly outbox: Outbox
  /** The name of the outbox's table. */
  readonly table: string
  /** Runs one unit of work. Returns its error, or null if it was confirmed. `during` runs inside of it. */
  write(during?: (tx: unknown) => Promise<unknown>): Promise<Error | null>
  /** Writes until a unit of work is confirmed. */
  insist(): Promise<void>
  /** Waits until all is published, and compares. */
  settle(): Promise<Comparison>
  stop(): Promise<void>
}

export interface Comparison {
  /** Saved and not arrived. */
  readonly lost: readonly number[]
  /** Arrived and not saved. */
  readonly invented: readonly number[]
  readonly isInOrder: boolean
  /** Confirmed and not saved. */
  readonly gone: readonly number[]
  /** How many events have no row of the business, or the other way round. */
  readonly disagreeing: number
}

export const ALL_AGREE: Comparison = {
  lost: [],
  invented: [],
  isInOrder: true,
  gone: [],
  disagreeing: 0,
}

interface Place {
  readonly url: string
  /** Raw SQL on the same database, past the outbox. */
  readonly sql: postgres.Sql
  readonly driver: TestDriver
}

export async function startNumbered(
  { url, sql, driver }: Place,
  options: Partial<OutboxOptions> = {},
): Promise<NumberedUnits> {
  const table = uniqueName('outbox').replaceAll('-', '_')
  const effects = `${table}_effects`
  await sql.unsafe(`create table ${effects} (n int)`)
  const { db, close } = driver.open(url, { max: 3 })
  const arrived = new Set<number>()
  const outbox = createOutbox({
    db,
    table,
    migrate: true,
    logger: false,
    publisher: handlersPublisher({
      handlers: { OrderCompleted: ({ payload }) => void arrived.add(payload as number) },
    }),
    threshold: '1s',
    publishTimeout: '900ms',
    pollInterval: '100ms',
    ...options,
  })
  await outbox.start()
  const confirmed: number[] = []
  let last = 0

  async function write(during?: (tx: unknown) => Promise<unknown>): Promise<Error | null> {
    const n = (last += 1)
    try {
      await outbox.withOutbox(async (tx, emit) => {
        await driver.query(tx, `insert into ${effects} values (${n})`)
        await during?.(tx)
        emit(newEvent({ aggregateId: 'one', payload: n }))
      })
      confirmed.push(n)
      return null
    } catch (error) {
      return error as Error
    }
  }

  async function insist(): Promise<void> {
    let latest: Error | null = null
    await waitUntil(async () => (latest = await write()) === null, {
      message: () => `a unit of work is confirmed, but: ${latest?.message}`,
    })
  }

  return {
    outbox,
    table,
    write,
    insist,
    async settle() {
      // Behind whatever committed without an answer.
      await insist()
      const left = () => sql`select from ${sql(table)} where status <> 'published'`
      await waitUntil(async () => (await left()).length === 0, { message: 'all are published' })
      const rows = await sql`select payload::text::int as n from ${sql(table)} order by seq`
      const saved = rows.map(({ n }) => n as number)
      const written = await sql<{ n: number }[]>`select n from ${sql(effects)} order by n`
      return {
        lost: without(saved, arrived),
        invented: without(arrived, saved),
        isInOrder: [...arrived].join() === saved.join(),
        gone: without(confirmed, saved),
        disagreeing:
          without(
            saved,
            written.map(({ n }) => n),
          ).length +
          written.length -
          saved.length,
      }
    },
    async stop() {
      await outbox.stop()
      await close()
    },
  }
}

function without(some: Iterable<number>, others: Iterable<number>): number[] {
  const taken = new Set(others)
  return [...some].filter((n) => !taken.has(n))
}
