// What the dashboard reads and acts through: an outbox of the application, or what the CLI has opened. It reads by a few
// statements at once that neither wait for locks nor run for long, so that the application keeps its connections. It
// rings the outbox's bell and passes pauses to it, so that this process acts on a change at once.
import { OutboxOptionsError } from '../errors.ts'
import type { Logger } from '../runtime/logger.ts'
import { silentLogger } from '../runtime/logger.ts'
import { Bell } from '../runtime/bell.ts'
import { Slots } from '../runtime/slots.ts'
import type { Database, Executor } from '../drivers/driver.ts'
import { withLimits } from '../store/limited.ts'
import type { Instance, Pause } from '../store/outbox/control-store.ts'
import { type DoctorStore, doctorStore } from '../store/outbox/doctor/doctor-store.ts'
import type { Store, StoreRules, TableStats } from '../store/outbox/outbox-store.ts'
import { postgresStore } from '../store/outbox/postgres.ts'
import { type PreviewStore, previewStore } from '../store/outbox/preview/preview-store.ts'
import type { TableName } from '../store/table-name.ts'
import { type Browse, EventBrowser } from '../upkeep/browse.ts'
import { FailureDesk, type Failures } from '../upkeep/failures.ts'
import type { History } from '../upkeep/history.ts'
import { partsOf } from '../upkeep/own-parts.ts'
import { type ActParts, type Acts, actsOf, type Retention } from './acts.ts'

/** A person waits. */
const LOCK_TIMEOUT_MS = 3_000
const STATEMENT_TIMEOUT_MS = 10_000
/** Of those that the application has, however many pages are open. */
const CONNECTIONS = 3

export interface DashboardSource {
  readonly db: Database<unknown>
  readonly table: TableName
  readonly store: Store<Executor>
  readonly doctor: DoctorStore
  readonly preview: PreviewStore
  readonly browse: Pick<Browse, 'list' | 'show'>
  readonly failures: Pick<Failures, 'groups' | 'count'>
  readonly acts: Acts
  /** null: not known here, so what the instances say applies. */
  readonly retention: Retention | null
  /** Where this process keeps what it sees of the table; null: it is no instance. */
  readonly history: Pick<History, 'learn'> | null
  /** The types that the application declares. */
  readonly types: readonly string[]
  /** Whether dead letters hold back what follows them; null: not known here, so the running instances are asked. */
  readonly deadLettersHold: boolean | null
  readonly logger: Logger
}

/** What is known of an outbox that was made here. */
type Known = Partial<Pick<DashboardSource, 'history' | 'types' | 'deadLettersHold'>>

/** The outbox at one moment. */
export interface Look {
  /** By the database's clock. */
  readonly clockMs: number
  readonly stats: TableStats
  readonly instances: readonly Instance[]
  readonly pauses: readonly Pause[]
}

export function sourceOf(outbox: unknown): DashboardSource {
  const parts = partsOf(outbox)
  if (!parts) throw new OutboxOptionsError('dashboard() takes what createOutbox() returns')
  const { db, options } = parts
  const { retentionMs, deadLetterRetentionMs } = options
  return openSource(db, options, {
    ...parts,
    retention: { retentionMs, deadLetterRetentionMs },
    types: Object.keys(options.catalog ?? {}),
    deadLettersHold: options.deadLettersHold,
  })
}

export function openSource(
  unlimited: Database<unknown>,
  given: StoreRules,
  parts: ActParts & Known,
): DashboardSource {
  const [lockMs, statementMs] = [LOCK_TIMEOUT_MS, STATEMENT_TIMEOUT_MS]
  const limited = withLimits(unlimited, { lockMs, statementMs })
  const changing = withLimits(unlimited, { lockMs, statementMs: 0 })
  const slots = new Slots(CONNECTIONS)
  const db: Database<unknown> = {
    ...limited,
    query: (statement, options) => slots.take(() => limited.query(statement, options)),
  }
  const rules = { ...given, statementTimeoutMs: STATEMENT_TIMEOUT_MS }
  const store = postgresStore(db, rules)
  return {
    db,
    table: rules.table,
    store,
    doctor: doctorStore(db, rules),
    preview: previewStore(db, rules),
    browse: new EventBrowser({ store }),
    failures: new FailureDesk({ store, logger: silentLogger, bell: new Bell() }),
    acts: actsOf(postgresStore(changing, given), parts),
    retention: parts.retention,
    history: parts.history ?? null,
    types: parts.types ?? [],
    deadLettersHold: parts.deadLettersHold ?? null,
    logger: parts.logger,
  }
}

/** How long events are kept: as this server knows, or else the longest retention of the instances seen in the last hour. */
export function retentionOf(
  { retention }: Pick<DashboardSource, 'retention'>,
  instances: readonly Instance[],
): Retention | null {
  if (retention) return retention
  const said = instances.map(({ settings }) => Number(settings['retention'])).filter((ms) => ms > 0)
  return said.length === 0 ? null : { retentionMs: Math.max(...said), deadLetterRetentionMs: null }
}

/** The time by the database's clock, in ms. */
export async function databaseTime({ doctor }: Pick<DashboardSource, 'doctor'>): Promise<number> {
  return (await doctor.server()).clockMs
}

export async function look(source: DashboardSource): Promise<Look> {
  const { store, history } = source
  const [stats, instances, pauses, clockMs] = await Promise.all([
    store.stats(),
    store.control.instances(),
    store.control.pauses(),
    databaseTime(source),
  ])
  history?.learn(stats)
  return { clockMs, stats, instances, pauses }
}
