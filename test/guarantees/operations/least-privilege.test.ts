// Each kind of role works with the rights that `aftercommit grants` prints, and with none of them taken away. The tables
// belong to a role that is no superuser, under names that have to be quoted, and the roles have hostile settings.
import { drizzle } from 'drizzle-orm/postgres-js'
import type postgres from 'postgres'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createOutbox, type Outbox } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { grantsScript, migrationGrants, type Purpose, RIGHTS } from '../../../src/store/grants.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import {
  createDatabase,
  directUrl,
  openClient,
  type TestDatabase,
} from '../../support/servers/database.ts'
import { nextEvent } from '../../support/timing/wait-until.ts'

const TABLE = { schema: 'Sch"ema', name: 'out\'b"ox' } as const
const QUOTED_SCHEMA = '"Sch""ema"'
const quoted = (suffix: string) => `${QUOTED_SCHEMA}."out'b""ox${suffix}"`
const SUFFIXES = { outbox: '', pauses: '_pauses', instances: '_instances' } as const

let database: TestDatabase
let admin: postgres.Sql
const owner = uniqueName('owner')
const opened: { outbox: Outbox<ReturnType<typeof drizzle>>; client: postgres.Sql }[] = []
const roles: string[] = []

/** A role with a password of its own, whose sessions begin with settings that careless SQL trips over. */
async function createRole(name: string): Promise<string> {
  await admin.unsafe(`create role "${name}" login password 'secret';
    alter role "${name}" set search_path = '';
    alter role "${name}" set standard_conforming_strings = off;
    alter role "${name}" set backslash_quote = off`)
  roles.push(name)
  return name
}

function urlOf(role: string): string {
  const url = new URL(directUrl(database.url))
  url.username = role
  url.password = 'secret'
  return url.href
}

function outboxOf(role: string, options: object = {}) {
  const client = openClient(urlOf(role), { max: 4 })
  const outbox = createOutbox({
    db: drizzle(client),
    schema: TABLE.schema,
    table: TABLE.name,
    publisher: handlersPublisher({ handlers: { OrderCompleted: () => {} } }),
    logger: false,
    pollInterval: '1h',
    // What cannot be recorded is given up.
    stopTimeout: '100ms',
    ...options,
  })
  opened.push({ outbox, client })
  return outbox
}

beforeAll(async () => {
  database = await createDatabase()
  admin = openClient(directUrl(database.url))
  await createRole(owner)
  await admin.unsafe(`create schema ${QUOTED_SCHEMA}; ${migrationGrants(TABLE, owner)}`)
  await outboxOf(owner).migrate()
  // What a careful administrator does: nothing is open to every role.
  await admin.unsafe(`revoke all on all functions in schema ${QUOTED_SCHEMA} from public`)
})
afterEach(async () => {
  for (const { outbox, client } of opened.splice(0)) {
    await outbox.stop().catch(() => {})
    await client.end({ timeout: 0 })
  }
  await admin.unsafe(`truncate ${quoted('')}, ${quoted('_pauses')}, ${quoted('_instances')}`)
})
afterAll(async () => {
  await database.drop()
  const server = openClient(directUrl(database.url).replace(database.name, 'postgres'), { max: 1 })
  for (const role of roles) await server.unsafe(`drop role "${role}"`)
  await server.end()
  await admin.end({ timeout: 0 })
})

/** What went wrong, on the surface and in the background. */
async function problemsOf(work: (problems: unknown[]) => Promise<void>): Promise<unknown[]> {
  const problems: unknown[] = []
  try {
    await work(problems)
  } catch (thrown) {
    problems.push(thrown)
  }
  return problems
}

function watch(outbox: Outbox<ReturnType<typeof drizzle>>, problems: unknown[]) {
  outbox.events.on('error', ({ error }) => problems.push(error))
  return outbox
}

/** Until it is recorded, or something in the background fails. */
async function publishOne(outbox: Outbox<ReturnType<typeof drizzle>>) {
  const published = nextEvent(outbox.events, 'event:published')
  const failed = nextEvent(outbox.events, 'error')
  // One of them never happens.
  for (const one of [published, failed]) one.catch(() => {})
  await outbox.withOutbox((_, emit) => emit(newEvent()))
  await Promise.race([published, failed])
}

async function leftBehind(count: number) {
  const before = outboxOf(owner, { immediate: false, poller: false })
  for (let n = 0; n < count; n += 1) await before.withOutbox((_, emit) => emit(newEvent()))
  await admin.unsafe(`update ${quoted('')} set available_at = now(), lease_token = null`)
}

/** A row that an instance left behind, and that the next beat of another one deletes. */
async function deadInstance() {
  await admin.unsafe(`insert into ${quoted('_instances')} (id, worker_id, host, pid, version, seen_at,
    publishers, immediate, poller, settings, report) values (gen_random_uuid(), 'gone', 'gone', 1, '0',
    now() - interval '2 days', '[]', true, true, '{}', '{}')`)
}

/** Everything that a role of this purpose is for. */
const WORK: Record<Purpose, (role: string, problems: unknown[]) => Promise<void>> = {
  async service(role, problems) {
    await deadInstance()
    const outbox = watch(outboxOf(role), problems)
    await outbox.start()
    await publishOne(outbox)
    await outbox.purge()
    await outbox.stop()
  },
  async application(role, problems) {
    await deadInstance()
    const outbox = watch(outboxOf(role, { poller: false, cleanup: false }), problems)
    await outbox.start()
    await publishOne(outbox)
    await outbox.stop()
  },
  async relay(role, problems) {
    await deadInstance()
    await leftBehind(3)
    // drain() is its fallback here, so that it is known when that has run.
    const outbox = watch(outboxOf(role, { immediate: false, poller: false }), problems)
    await outbox.start()
    const { delivered } = await outbox.drain()
    if (delivered < 3) problems.push(new Error(`delivered ${delivered}`))
    await outbox.purge()
    await outbox.stop()
  },
  async operator(role) {
    await leftBehind(2)
    await admin.unsafe(`update ${quoted('')} set status = 'dead_letter', last_error = 'refused'`)
    const outbox = outboxOf(role)
    const [first] = await outbox.deadLetters.list()
    await outbox.redact({ id: first!.id })
    await outbox.deadLetters.retry({ id: first!.id })
    await outbox.deadLetters.discard({ all: true })
    await outbox.pause('orders', { by: 'ada' })
    await outbox.pause('orders', { by: 'bob' })
    await outbox.resume('orders')
    await outbox.instances()
    await outbox.purge()
  },
  async reader(role) {
    await leftBehind(1)
    const outbox = outboxOf(role)
    await outbox.browse.list()
    await outbox.stats()
    await outbox.instances()
  },
}

const purposes = Object.keys(RIGHTS) as Purpose[]

describe.each(purposes)('a role for the purpose %s', (purpose) => {
  let role: string
  beforeAll(async () => {
    role = await createRole(uniqueName(purpose))
    await admin.unsafe(grantsScript(TABLE, role, purpose))
  })

  it('does its work', async () => {
    expect(await problemsOf((problems) => WORK[purpose](role, problems))).toEqual([])
  })

  const rights = (Object.keys(SUFFIXES) as (keyof typeof SUFFIXES)[]).flatMap((key) =>
    RIGHTS[purpose][key].map((act) => [act, key] as const),
  )
  it.each(rights)('needs %s on the table of the %s', async (act, key) => {
    const on = quoted(SUFFIXES[key])
    await admin.unsafe(`revoke ${act} on ${on} from "${role}"`)
    try {
      const problems = await problemsOf((found) => WORK[purpose](role, found))
      expect(problems).not.toEqual([])
    } finally {
      await admin.unsafe(`grant ${act} on ${on} to "${role}"`)
    }
  })
})
