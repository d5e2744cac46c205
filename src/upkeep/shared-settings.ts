// Two outboxes on one table have to agree on some settings, such as the order that both keep and how long rows stay. Those
// of this process are compared here. What other processes have set is in the rows of their instances.
import type { ResolvedOptions } from '../options/options.ts'
import { quoteName } from '../store/table-name.ts'

type Shared = Readonly<Record<string, unknown>>

const byClient = new WeakMap<object, Map<string, Shared>>()

/** Durations in milliseconds. */
export function sharedSettings(options: ResolvedOptions): Shared {
  const { relay, orderScopes, deadLettersHold, lockKeys, retentionMs, deadLetterTopic } = options
  const { payloads } = options
  return {
    relay,
    order: orderScopes ? 'aggregate' : 'none',
    onDeadLetter: deadLettersHold ? 'hold' : 'continue',
    lockKeys,
    retention: retentionMs,
    deadLetterTopic,
    // An instance that does not read them would send what the table holds.
    payloads: payloads && Object.keys(payloads).toSorted().join(' and '),
  }
}

/** Settings that an instance's row shows and that may differ: it is enough if one instance cleans up. */
export function shownSettings({ cleanup }: ResolvedOptions): Shared {
  return { cleanup: cleanup !== null }
}

export function isShownOnly(setting: string): boolean {
  return setting === 'cleanup'
}

/** Logs a warning if an earlier outbox of this process uses the table with other settings. */
export function compareSettings(client: unknown, options: ResolvedOptions): void {
  const { table } = options
  const own = sharedSettings(options)
  const name = `${quoteName(table.schema)}.${quoteName(table.name)}`
  const tables = byClient.get(client as object) ?? new Map<string, Shared>()
  byClient.set(client as object, tables)
  const earlier = tables.get(name)
  if (!earlier) {
    tables.set(name, own)
    return
  }
  const different = Object.keys(own).filter((setting) => own[setting] !== earlier[setting])
  if (different.length === 0) return
  options.logger.warn(
    { table: name, different },
    'another outbox of this process uses the same table with other settings; give both the same settings, or separate tables',
  )
}
