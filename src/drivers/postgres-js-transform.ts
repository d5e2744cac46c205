// What is refused of a postgres.js client, be it ours to use or Drizzle's: rows that are not what Postgres sent.
import { OutboxOptionsError } from '../errors.ts'

interface Transform {
  column?: { from?: (name: string) => string }
  row?: { from?: unknown }
}

/** Our columns have names of one word or in camel case, which postgres.camel and postgres.kebab leave as they are. */
const SAMPLES = ['id', 'aggregateType']

export function refuseRenaming(owner: string, client: unknown): void {
  const { transform } = ((client ?? {}) as { options?: { transform?: Transform } }).options ?? {}
  const rename = transform?.column?.from
  const renamed = rename && SAMPLES.find((name) => rename(name) !== name)
  if (renamed) {
    throw new OutboxOptionsError(
      `${owner} has a client whose transform.column.from makes '${renamed}' into '${rename(renamed)}', also in what the outbox reads; postgres.camel would leave it alone`,
    )
  }
  if (transform?.row?.from) {
    throw new OutboxOptionsError(
      `${owner} has a client with transform.row.from, which would change what the outbox reads; transform rows where you use them`,
    )
  }
}
