// `aftercommit/config`: what aftercommit.config.ts exports. Types and one function; nothing of the library is loaded.
import type { Outbox } from '../outbox.ts'
import type { OutboxOptions } from '../options/options.ts'

/** The options that `aftercommit relay` needs: run the fallback only, also beside a connector, and log here. */
export type RelayOptions = Required<
  Pick<OutboxOptions, 'immediate' | 'poller' | 'enabled' | 'logger'>
> & { relay: 'outbox' }

export interface CliConfig {
  /** The database. `--database-url` and the variable DATABASE_URL come before it. */
  databaseUrl?: string
  /** The schema of the outbox table. @default 'public' */
  schema?: string
  /** The name of the outbox table. @default 'outbox' */
  table?: string
  /**
   * Creates the outbox that `aftercommit relay` runs. Spread what it is given over your own options:
   * `(relay) => createOutbox({ ...options, ...relay })`.
   */
  outbox?: (relay: RelayOptions) => AnyOutbox | Promise<AnyOutbox>
}

/** What the relay uses of an outbox, whatever its database and its events. */
export type AnyOutbox = Pick<Outbox, 'start' | 'stop'>

/** Returns the config unchanged, for the types. */
export function defineConfig(config: CliConfig): CliConfig {
  return config
}
