// What a command gets: the options that all commands share, the database on demand, and a place to print.
import { databaseUrlProblem } from './database-url.ts'
import type { Executor } from '../drivers/driver.ts'
import { type OpenedDatabase, openUrl } from '../drivers/open-url.ts'
import { isLocked } from '../store/database.ts'
import { blockedBy } from '../upkeep/doctor/locks.ts'
import { doctorStore } from '../store/outbox/doctor/doctor-store.ts'
import { withLimits } from '../store/limited.ts'
import { postgresStore } from '../store/outbox/postgres.ts'
import { previewStore } from '../store/outbox/preview/preview-store.ts'
import type { Store, StoreRules } from '../store/outbox/outbox-store.ts'
import { checkName, type TableName } from '../store/table-name.ts'
import { CliError, usageError } from './cli-error.ts'
import { EXIT } from './exit-codes.ts'
import type { CliConfig } from './config.ts'
import { loadConfig } from './load-config.ts'
import type { Output } from './output/output.ts'

/** The options of every command. */
export interface GlobalOptions {
  readonly databaseUrl?: string
  readonly config?: string | false
  readonly schema?: string
  readonly table?: string
  readonly json?: boolean
  readonly exactTimes?: boolean
}

/** A person waits, and a table may be large. */
const STATEMENT_TIMEOUT_MS = 60_000

/** Then the session that holds the lock is named. */
const LOCK_TIMEOUT_MS = 3_000

/** The tables of one outbox, in its database. */
export interface Session {
  readonly opened: OpenedDatabase
  readonly table: TableName
  readonly store: Store<Executor>
  readonly doctor: ReturnType<typeof doctorStore>
  readonly preview: ReturnType<typeof previewStore>
  /** The database's clock, in ms. Relative times are relative to it. */
  readonly now: () => Promise<number>
}

export class Context {
  readonly out: Output
  readonly #options: GlobalOptions
  readonly #env: NodeJS.ProcessEnv
  #config: Promise<CliConfig> | null = null
  #session: Promise<Session> | null = null

  constructor(out: Output, options: GlobalOptions, env: NodeJS.ProcessEnv) {
    this.out = out
    this.#options = options
    this.#env = env
  }

  config(): Promise<CliConfig> {
    return (this.#config ??= loadConfig(this.#options.config, process.cwd()))
  }

  /** null: none was named. */
  async databaseUrl(): Promise<string | null> {
    const config = await this.config()
    return this.#options.databaseUrl || this.#env['DATABASE_URL'] || config.databaseUrl || null
  }

  async table(): Promise<TableName> {
    const config = await this.config()
    return {
      schema: checkName('schema', this.#options.schema ?? config.schema ?? 'public'),
      name: checkName('table', this.#options.table ?? config.table ?? 'outbox'),
    }
  }

  session(): Promise<Session> {
    return (this.#session ??= this.#open())
  }

  /** A statement that did not get a lock: the error names the session that holds it. Any other error stays as it is. */
  async explainLock(error: unknown): Promise<unknown> {
    if (!isLocked(error)) return error
    const { doctor } = await this.session()
    const found = blockedBy(await doctor.blockers())
    const message = found.map(({ message: what, remedy }) => `${what}; ${remedy}`).join('\n')
    return new CliError(EXIT.failed, message, { code: 'LOCKED', cause: error })
  }

  async close(): Promise<void> {
    const session = await this.#session?.catch(() => null)
    await session?.opened.close()
  }

  async #open(): Promise<Session> {
    const url = await this.databaseUrl()
    if (url === null) {
      throw usageError(
        'no database; set DATABASE_URL, pass --database-url, or set databaseUrl in aftercommit.config.ts',
      )
    }
    const problem = databaseUrlProblem(url)
    if (problem) throw usageError(problem)
    const table = await this.table()
    const connected = await openUrl(url, 'aftercommit-cli')
    const db = withLimits(connected.db, { lockMs: LOCK_TIMEOUT_MS, statementMs: 0 })
    const opened = { db, close: () => connected.close() }
    const rules = storeRules(table)
    const doctor = doctorStore(db, rules)
    return {
      opened,
      table,
      store: postgresStore(db, rules),
      doctor,
      preview: previewStore(db, rules),
      now: async () => (await doctor.server()).clockMs,
    }
  }
}

// The CLI saves and claims nothing. Dead letters may hold their lanes, which it cannot know, so what is behind them is woken,
// and a dead letter that an event may wait for is shown with that reservation.
export function storeRules(table: TableName): StoreRules {
  return {
    table,
    deadLettersHold: true,
    savesForCdc: false,
    lockKeys: false,
    keepPublished: true,
    deadLetterTopic: null,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  }
}
