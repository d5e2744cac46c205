// A table with a past: rows that were published long ago, and what a turn adds to them taken away again.
import postgres from 'postgres'

const CHUNK = 250_000

/** Published rows as a week leaves them, in chunks, so that none of them is one long transaction. */
export async function fillHistory(databaseUrl: string, rows: number): Promise<void> {
  await withClient(databaseUrl, async (client) => {
    await inChunks(rows, CHUNK, async (first, last) => {
      await client`insert into outbox (id, lane, aggregate_type, aggregate_id, event_type, topic, payload,
          headers, status, max_attempts, available_at, occurred_at, published_at)
        select gen_random_uuid(), n, 'order', 'order-' || n, 'OrderPlaced', 'history', '{"id":"1"}', '{}',
          'published', 10, now(), now(), now()
        from generate_series(${first}::int, ${last}::int) n`
    })
  })
  await settle(databaseUrl)
}

/** Two chunks at a time, from 1 to `rows`: nothing is measured meanwhile, and there are two cores at least. */
export async function inChunks(
  rows: number,
  size: number,
  insert: (first: number, last: number) => Promise<void>,
): Promise<void> {
  let next = 1
  async function insertLeft() {
    while (next <= rows) {
      const first = next
      next += size
      await insert(first, Math.min(first + size - 1, rows))
    }
  }
  await Promise.all([insertLeft(), insertLeft()])
}

/** So that the next round finds what this one found. */
export async function restoreHistory(databaseUrl: string): Promise<void> {
  await withClient(databaseUrl, async (client) => {
    await client`delete from outbox where topic <> 'history'`
  })
  await settle(databaseUrl)
}

/** So that no turn pays for the writes of what came before it. */
export async function settle(databaseUrl: string): Promise<void> {
  await withClient(databaseUrl, async (client) => {
    await client`vacuum analyze`
    await client`checkpoint`
  })
}

export async function withClient(
  databaseUrl: string,
  work: (client: postgres.Sql) => Promise<void>,
) {
  const client = postgres(databaseUrl, { max: 2, onnotice: () => {} })
  try {
    await work(client)
  } finally {
    await client.end()
  }
}
