// The options that select events by their fields, for list, retry and discard.
import type { Command } from 'commander'
import { moment, type Moment } from './arguments.ts'
import type { Session } from './context.ts'

export interface EventFields {
  readonly type?: string
  readonly topic?: string
  readonly aggregateType?: string
  readonly aggregateId?: string
}

export interface FilterOptions extends EventFields {
  readonly since?: Moment
  readonly before?: Moment
}

/** `happened`: what `--since` and `--before` are about. */
export function withFilter(command: Command, happened: string): Command {
  return command
    .option('--type <name>', 'only of this event type')
    .option('--topic <name>', 'only for this topic')
    .option('--aggregate-type <name>', 'only of this aggregate type')
    .option('--aggregate-id <id>', 'only of this aggregate')
    .option(
      '--since <time>',
      `${happened} since then: 2026-01-31T12:00:00Z, or 2h for two hours ago`,
      moment,
    )
    .option('--before <time>', `${happened} before then`, moment)
}

/** Those that were given. */
export function fieldsOf({ type, topic, aggregateType, aggregateId }: FilterOptions): EventFields {
  return {
    ...(type !== undefined && { type }),
    ...(topic !== undefined && { topic }),
    ...(aggregateType !== undefined && { aggregateType }),
    ...(aggregateId !== undefined && { aggregateId }),
  }
}

/** By the database's clock, which is not asked where no option needs it. */
export async function timesOf(
  { since, before }: FilterOptions,
  { now }: Pick<Session, 'now'>,
): Promise<{ since?: Date; before?: Date }> {
  const isRelative = [since, before].some((one) => one !== undefined && 'agoMs' in one)
  const nowMs = isRelative ? await now() : 0
  const toDate = (one: Moment) => ('agoMs' in one ? new Date(nowMs - one.agoMs) : one)
  return {
    ...(since !== undefined && { since: toDate(since) }),
    ...(before !== undefined && { before: toDate(before) }),
  }
}
