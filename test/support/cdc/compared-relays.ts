// The same rows through both relays: the connector sends them when they are saved, then the library sends them again as the
// guide says for a lost slot. Each event is on its topic twice, and the two messages are compared byte by byte.
import { isDeepStrictEqual } from 'node:util'
import type postgres from 'postgres'
import type { Outbox } from '../../../src/index.ts'
import { groupBy } from '../../../src/runtime/group-by.ts'
import type { TopicMessage, TopicReader } from '../servers/topic-reader.ts'
import { waitUntil } from '../timing/wait-until.ts'
import { variedEvent } from './varied-events.ts'

/** As in docs/guides/cdc.md. */
const SEND_AGAIN = `update outbox set status = 'pending', published_at = null, available_at = clock_timestamp()
  where status = 'published' and cdc_occurred_at is not null`

const PER_UNIT = 100

export async function saveVaried(
  outbox: Pick<Outbox, 'withOutbox'>,
  count: number,
  topics: readonly string[],
): Promise<void> {
  for (let n = 0; n < count; n += PER_UNIT) {
    const size = Math.min(PER_UNIT, count - n)
    const events = Array.from({ length: size }, (_, at) => variedEvent(n + at, topics))
    await outbox.withOutbox((_, emit) => void emit(events))
  }
}

/** Resolves when the library has sent every row again. */
export async function sendAgain(sql: postgres.Sql, own: Pick<Outbox, 'drain'>): Promise<void> {
  await sql.unsafe(SEND_AGAIN)
  await waitUntil(
    async () => {
      await own.drain()
      const waiting = await sql`select from outbox where status <> 'published' limit 1`
      return waiting.length === 0
    },
    { message: 'the library has sent everything again', timeoutMs: 300_000 },
  )
}

export type Compared = {
  readonly pairs: number
  /** Ids of events that are not on their topic exactly twice, once from each relay. */
  readonly unpaired: readonly string[]
  readonly different: readonly string[]
}

export function compareRelays(readers: readonly Pick<TopicReader, 'messages'>[]): Compared {
  let pairs = 0
  const unpaired: string[] = []
  const different: string[] = []
  for (const { messages } of readers) {
    const byId = groupBy(messages, ({ headers }) => headers['event-id'] ?? 'none')
    for (const [id, both] of byId) {
      const connector = both.filter(isFromConnector)
      const own = both.filter((message) => !isFromConnector(message))
      if (connector.length !== 1 || own.length !== 1) {
        unpaired.push(id)
        continue
      }
      pairs += 1
      if (!isDeepStrictEqual(seen(unfold(connector[0]!)), seen(own[0]!))) {
        const [theirs, ours] = [seen(unfold(connector[0]!)), seen(own[0]!)]
        different.push(JSON.stringify({ theirs, ours }).slice(0, 2_000))
      }
    }
  }
  return { pairs, unpaired, different }
}

export function isFromConnector({ headers }: Pick<TopicMessage, 'headers'>): boolean {
  return 'event-headers' in headers
}

/** The one difference that the guide names: the application's headers are JSON in one header. */
function unfold(message: TopicMessage): TopicMessage {
  const { 'event-headers': free, ...headers } = message.headers
  return { ...message, headers: { ...headers, ...(JSON.parse(free!) as Record<string, string>) } }
}

function seen({ key, bytes, headers, partition }: TopicMessage) {
  return { key, value: bytes?.toString('base64') ?? null, headers, partition }
}
