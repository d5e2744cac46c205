// Rows of instances, written past the outbox, for what only looks at them.
import { randomUUID } from 'node:crypto'
import type postgres from 'postgres'

export type SeededInstance = {
  readonly workerId?: string
  readonly seenSecondsAgo?: number
  readonly startedSecondsAgo?: number
  /** null: every topic. */
  readonly topics?: string[] | null
  readonly immediate?: boolean
  readonly poller?: boolean
  readonly settings?: object
  readonly version?: string
  readonly report?: object
}

export async function seedInstance(sql: postgres.Sql, given: SeededInstance = {}): Promise<void> {
  const { seenSecondsAgo = 0, startedSecondsAgo = 3_000, topics = null, settings = {} } = given
  const { version = '0.1.0', report = {}, immediate = true, poller = true } = given
  const { workerId = `worker-${seenSecondsAgo}-${version}` } = given
  const publishers = JSON.stringify([{ name: 'kafka', topics }])
  await sql`
    insert into outbox_instances (id, worker_id, host, pid, version, started_at, seen_at, publishers, immediate, poller,
      settings, report)
    values (${randomUUID()}, ${workerId}, 'host-1', 42, ${version},
      now() - ${startedSecondsAgo}::float8 * interval '1 s', now() - ${seenSecondsAgo}::float8 * interval '1 s',
      ${publishers}::text::json, ${immediate}, ${poller},
      ${JSON.stringify(settings)}::text::json, ${JSON.stringify(report)}::text::json)`
}
