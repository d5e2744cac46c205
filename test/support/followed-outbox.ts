// An outbox on a primary and its standby, behind the address of the pair, with handlers that note what they see.
import type postgres from 'postgres'
import { createOutbox, type Outbox, type OutboxOptions } from '../../src/index.ts'
import { type Handler, handlersPublisher } from '../../src/publishers/handlers.ts'
import { newEvent } from './doubles/sample-events.ts'
import { connect } from './servers/database.ts'
import { PostgresPair, type StandbyKind } from './servers/postgres-pair.ts'
import { waitUntil } from './timing/wait-until.ts'

type Seen = Pick<Parameters<Handler>[0], 'id' | 'payload' | 'seq'>

export interface FollowedOutbox {
  readonly pair: PostgresPair
  readonly outbox: Outbox
  /** Raw SQL by the address of the pair. */
  readonly client: postgres.Sql
  /** What was handled, in order. */
  readonly seen: readonly Seen[]
  readonly emit: (payload: unknown, aggregateId?: string) => Promise<unknown>
  /** Emits until it commits: the server may be away. */
  readonly insist: (payload: unknown) => Promise<void>
  /** Resolves when they are handled and recorded: a server that dies before the record sends an event again. */
  readonly delivered: (...payloads: readonly unknown[]) => Promise<void>
  /** Resolves when the standby has everything. */
  readonly replicated: () => Promise<void>
  readonly stop: () => Promise<void>
}

/** `handle` is called before an event counts as seen. */
export async function startFollowed(
  kind: StandbyKind,
  options: Partial<OutboxOptions> & { handle?: Handler } = {},
): Promise<FollowedOutbox> {
  const { handle, ...rest } = options
  const pair = await PostgresPair.start(kind)
  const connection = connect(pair.url, { backoff: () => 0.05, connect_timeout: 3 })
  const { db, client } = connection
  const seen: Seen[] = []
  const note: Handler = async (event, context) => {
    await handle?.(event, context)
    seen.push({ id: event.id, payload: event.payload, seq: event.seq })
  }
  const outbox = createOutbox({
    db,
    migrate: true,
    logger: false,
    publisher: handlersPublisher({ handlers: { OrderCompleted: note } }),
    threshold: '1s',
    publishTimeout: '900ms',
    pollInterval: '200ms',
    ...rest,
  })
  const recorded = new Set<string>()
  outbox.events.on('event:published', ({ event }) => void recorded.add(event.id))
  await outbox.start()

  const emit = (payload: unknown, aggregateId = 'one') =>
    outbox.withOutbox((_, into) => into(newEvent({ aggregateId, payload })))
  const isDelivered = (payload: unknown) =>
    seen.some((one) => one.payload === payload && recorded.has(one.id))
  return {
    pair,
    outbox,
    client,
    seen,
    emit,
    async insist(payload) {
      const commits = () =>
        emit(payload).then(
          () => true,
          () => false,
        )
      await waitUntil(commits, { message: `${String(payload)} is committed` })
    },
    async delivered(...payloads) {
      await waitUntil(() => payloads.every(isDelivered), {
        message: `${payloads.join()} is delivered`,
      })
    },
    async replicated() {
      const isDone = async () => {
        const [row] = await client`
          select replay_lsn >= pg_current_wal_lsn() as done from pg_stat_replication`
        return Boolean(row?.['done'])
      }
      await waitUntil(isDone, { message: 'the standby has all of it' })
    },
    async stop() {
      await outbox.stop()
      await connection.close()
      await pair.stop()
    },
  }
}
