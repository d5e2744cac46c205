// What may be in the way of a claim: tables of our outbox, each filled with something that the claim cannot take.
import postgres from 'postgres'
import { inChunks, settle, withClient } from './published-rows.ts'

export const SCENES = [
  'nothing else',
  'topic out of reach',
  'resting after a failure',
  'one lane behind a failed head',
  'published under an old transaction',
] as const

export type Scene = (typeof SCENES)[number]

/** The scene that the others are compared with. */
export const EMPTY_SCENE: Scene = 'nothing else'

/** The topic that the publisher of the claims cannot reach. */
export const AWAY = 'away'

const RESTS = { status: 'failed', attempts: 1, topic: 'resting', dueIn: '6 hours' } as const
const DUE = { status: 'pending', attempts: 0, topic: 'waiting', dueIn: '-1 hour' } as const

const CHUNK = 100_000
const PAYLOAD_BYTES = 1_000
/** Pages of 8 kB: some 7,000 rows. */
const PAGES_AT_ONCE = 1_000
/** Not the lane of any row that is numbered. */
const HOT_LANE = 2 ** 47

interface Rows {
  readonly status: string
  readonly attempts: number
  readonly topic: string
  readonly dueIn: string
  /** @default each row has its own */
  readonly lane?: number
}

/** How many rows a scene has, if the large ones have `most`. */
export function rowsOf(scene: Scene, most: number): number {
  if (scene === EMPTY_SCENE) return 0
  return scene === 'one lane behind a failed head' ? most / 10 : most
}

/** Fills the outbox table of a database. Returns what ends the scene. */
export async function fillScene(
  databaseUrl: string,
  scene: Scene,
  rows: number,
): Promise<() => Promise<void>> {
  const leave = scene.endsWith('old transaction') ? await beOld(databaseUrl) : async () => {}
  await withClient(databaseUrl, async (client) => {
    // By the clock it would come in the middle of some turns and not of others.
    await client`alter table outbox set (autovacuum_enabled = off)`
    await FILLS[scene](client, rows)
  })
  await settle(databaseUrl)
  return leave
}

const FILLS: Record<Scene, (client: postgres.Sql, rows: number) => Promise<void>> = {
  'nothing else': async () => {},
  'topic out of reach': (client, rows) => insert(client, rows, { ...DUE, topic: AWAY }),
  'resting after a failure': (client, rows) => insert(client, rows, RESTS),
  'one lane behind a failed head': async (client, rows) => {
    await insert(client, 1, { ...RESTS, topic: DUE.topic, lane: HOT_LANE })
    await insert(client, rows, { ...DUE, lane: HOT_LANE })
  },
  'published under an old transaction': async (client, rows) => {
    await insert(client, rows, DUE)
    await publish(client)
  },
}

async function insert(client: postgres.Sql, rows: number, like: Rows): Promise<void> {
  const { status, attempts, topic, dueIn, lane = null } = like
  const payload = JSON.stringify({ text: 'x'.repeat(PAYLOAD_BYTES) })
  await inChunks(rows, CHUNK, async (first, last) => {
    await client`insert into outbox (id, lane, aggregate_type, aggregate_id, event_type, topic, payload,
        headers, status, attempts, max_attempts, available_at, occurred_at)
      select ${newId(client)}, coalesce(${lane}::bigint, n), 'order',
        'order-' || coalesce(${lane}::bigint, n), 'OrderPlaced', ${topic}::text, ${payload}::text::json,
        '{}', ${status}::text, ${attempts}::int, 10,
        now() + ${dueIn}::text::interval + n * interval '1 ms', now()
      from generate_series(${first}::int, ${last}::int) n`
  })
}

// A UUIDv7, as the library makes them: it begins with the time.
function newId(client: postgres.Sql) {
  return client`overlay(overlay(overlay(md5(random()::text)
    placing lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') from 1)
    placing '7' from 13) placing '8' from 17)::uuid`
}

// Page by page through the table as it was: an update puts its row behind these pages.
async function publish(client: postgres.Sql): Promise<void> {
  const [{ pages }] = await client<[{ pages: number }]>`
    select (pg_relation_size('outbox') / current_setting('block_size')::int)::int as pages`
  await inChunks(pages, PAGES_AT_ONCE, async (first, last) => {
    await client`update outbox set status = 'published', published_at = now(), updated_at = now()
      where ctid >= ${`(${first - 1},0)`}::text::tid and ctid < ${`(${last},0)`}::text::tid
        and status = 'pending'`
  })
}

/** Takes away what the claims of a turn published, so that the next one finds what this one found. */
export async function restoreScene(databaseUrl: string, topic: string): Promise<void> {
  await withClient(databaseUrl, async (client) => {
    await client`delete from outbox where topic = ${topic}`
  })
  await settle(databaseUrl)
}

/** A transaction that somebody forgot: no row version that dies after it began can be vacuumed away. */
async function beOld(databaseUrl: string): Promise<() => Promise<void>> {
  const client = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  const session = await client.reserve()
  await session`begin isolation level repeatable read`
  await session`select count(*) from outbox`
  return async () => {
    await session`rollback`
    session.release()
    await client.end()
  }
}
