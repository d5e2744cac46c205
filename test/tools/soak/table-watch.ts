// The outbox table as Postgres sees it: how large it is, what is dead in it, and what the outbox's statements
// cost. Also the somebody else who holds an old transaction open.
import postgres from 'postgres'

export interface TableSize {
  readonly tableBytes: number
  readonly indexBytes: number
  /** Row versions that no new transaction can see. */
  readonly deadRows: number
  /** Row versions written so far: each row once when it is saved, and once more for each update. */
  readonly versions: number
  /** Rows saved so far. */
  readonly rows: number
  readonly autovacuums: number
}

export interface StatementTotal {
  readonly calls: number
  readonly ms: number
  /** Pages looked at, whether in memory or not. */
  readonly pages: number
}

export type StatementTotals = Readonly<Partial<Record<Step, StatementTotal>>>

export const STEPS = ['save', 'claim', 'record', 'purge', 'stats'] as const

export type Step = (typeof STEPS)[number]

/** The comment that names a statement's step is not part of what pg_stat_statements keeps. */
const BEGINNINGS: Record<Step, string> = {
  save: 'insert into "public"."outbox" as o',
  claim: 'with locked as materialized',
  record: 'update "public"."outbox" o set status',
  purge: 'with turn as materialized',
  stats: 'select w.*, d.*, a.*',
}

export class TableWatch {
  readonly #url: string
  readonly #client: postgres.Sql

  private constructor(url: string) {
    this.#url = url
    this.#client = postgres(url, { max: 1, onnotice: () => {} })
  }

  static async open(url: string): Promise<TableWatch> {
    const watch = new TableWatch(url)
    await watch.#client`create extension if not exists pg_stat_statements`
    return watch
  }

  async close(): Promise<void> {
    await this.#client.end({ timeout: 0 })
  }

  async size(): Promise<TableSize> {
    const [row] = await this.#client<TableSize[]>`
      select pg_table_size(relid)::float8 as "tableBytes", pg_indexes_size(relid)::float8 as "indexBytes",
        n_dead_tup::float8 as "deadRows", (n_tup_ins + n_tup_upd)::float8 as versions,
        n_tup_ins::float8 as rows, autovacuum_count::int as autovacuums
      from pg_stat_user_tables where relname = 'outbox'`
    return row!
  }

  /** How many bytes one row version takes, on average of those that are there. */
  async rowBytes(): Promise<number> {
    const [row] = await this.#client<{ bytes: number }[]>`
      select coalesce(avg(pg_column_size(o.*)), 0)::float8 as bytes from outbox o`
    return row!.bytes
  }

  async indexes(): Promise<Record<string, number>> {
    const rows = await this.#client<{ name: string; bytes: number }[]>`
      select indexrelid::regclass::text as name, pg_relation_size(indexrelid)::float8 as bytes
      from pg_index where indrelid = 'outbox'::regclass order by 1`
    return Object.fromEntries(rows.map(({ name, bytes }) => [name, bytes]))
  }

  /** By step, since the start. */
  async statements(): Promise<StatementTotals> {
    const rows = await this.#client<(StatementTotal & { step: Step })[]>`
      select s.step, sum(calls)::float8 as calls, sum(total_exec_time)::float8 as ms,
        sum(shared_blks_hit + shared_blks_read)::float8 as pages
      from pg_stat_statements
      join json_each_text(${JSON.stringify(BEGINNINGS)}::text::json) as s(step, beginning)
        on starts_with(query, s.beginning)
      group by 1`
    return Object.fromEntries(rows.map(({ step, ...total }) => [step, total]))
  }

  /** A transaction with a snapshot from now: nothing that dies from here on can be removed until it ends. */
  async holdOldTransaction(): Promise<() => Promise<void>> {
    const client = postgres(this.#url, { max: 1 })
    const session = await client.reserve()
    await session`begin isolation level repeatable read`
    await session`select count(*) from outbox`
    return async () => {
      await session`rollback`
      session.release()
      await client.end()
    }
  }
}
