// The migrations of the outbox that there are, so that a new one changes no test.
import { readdirSync } from 'node:fs'

export const MIGRATION_NAMES: readonly string[] = readdirSync(
  new URL('../../drizzle/', import.meta.url),
)
  .filter((name) => name.endsWith('.sql'))
  .toSorted()
