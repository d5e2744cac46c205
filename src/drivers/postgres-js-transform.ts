// Refuses a postgres.js client, ours or Drizzle's, whose rows differ from what Postgres sent.
import { OutboxOptionsError } from '../errors.ts'

interface Transform {
  column?: { from?: (name: string) => string }
  row?: { from?: unknown }
}

/** Our column names are one word or camel case, which postgres.camel and postgres.kebab leave unchanged. */
const SAMPLES = ['id', 'aggregateType']

export function refuseRenaming(owner: string, client: unknown): void {
  const { transform } = ((client ?? {}) as { options?: { transform?: Transform } }).options ?? {}
  const rename = transform?.column?.from
  const renamed = rename && SAMPLES.find((name) => rename(name) !== name)
  if (renamed) {
    throw new OutboxOptionsError(
      `${owner} has a client whose transform.column.from turns '${renamed}' into '${rename(renamed)}', also in the rows that the outbox reads; use a transform that leaves it unchanged, such as postgres.camel`,
    )
  }
  if (transform?.row?.from) {
    throw new OutboxOptionsError(
      `${owner} has a client with transform.row.from, which would change what the outbox reads; transform rows where you use them`,
    )
  }
}
