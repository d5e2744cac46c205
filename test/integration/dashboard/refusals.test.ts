// What the dashboard's server refuses, and that nothing happens then: strangers, other sites, people who may only look,
// input that is none, and a database that is away, locked or for reading only.
import postgres from 'postgres'
import { describe, expect, it } from 'vitest'
import type { Refusal } from '../../../src/dashboard/api.ts'
import { dashboard, type DashboardOptions } from '../../../src/dashboard/dashboard.ts'
import { postgresJs } from '../../../src/drivers/postgres-js.ts'
import { createOutbox, type Logger } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { clientOf, OWN_PAGE, refused } from '../../support/dashboard-client.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { useFixture } from '../../support/fixture.ts'
import { seed } from '../../support/seeded-events.ts'
import { directUrl } from '../../support/servers/database.ts'

const fixture = useFixture()

const actor = () => ({ by: 'ada', mayAct: true })

function open(authorize: DashboardOptions['authorize'] = actor) {
  return clientOf(dashboard(fixture.handling({}), { authorize }))
}

const asOf = new Date().toISOString()
const all = { selection: { all: true }, asOf }
const ID = '019c0f5e-7b4a-7000-8000-000000000000'
const READING = [
  'overview',
  'history',
  'events',
  `events/${ID}`,
  `events/${ID}/content`,
  'groups',
  'doctor',
]
const ACTING: [path: string, body: object][] = [
  ['retry', all],
  ['discard', all],
  ['purge', {}],
  ['pause', { topic: 'orders' }],
  ['resume', { topic: 'orders' }],
  ['reroute', { from: 'ordres', to: 'orders' }],
]

describe('without permission', () => {
  it.each([
    [null, 401, 'UNAUTHORIZED'],
    [false, 403, 'FORBIDDEN'],
  ] as const)(
    'nothing is shown or done when authorize returns %s',
    async (access, status, code) => {
      await seed(fixture.sql, [{ id: ID, status: 'dead_letter' }])
      const { get, post } = open(() => access)
      for (const path of READING) expect(await get(path)).toMatchObject(refused(status, code))
      for (const [path, body] of [...ACTING, ['preview', { act: 'purge' }] as const]) {
        expect(await post(path, body)).toMatchObject(refused(status, code))
      }
      expect(await fixture.rows()).toMatchObject([{ status: 'dead_letter' }])
    },
  )

  it('nothing is done for a person who may only look', async () => {
    await seed(fixture.sql, [{ id: ID, status: 'dead_letter' }])
    const { get, post } = open(() => ({ by: 'ada' }))
    for (const path of READING) expect(await get(path)).toMatchObject({ status: 200 })
    expect(await post('preview', { act: 'retry', selection: { all: true } })).toMatchObject({
      status: 200,
    })
    for (const [path, body] of ACTING) {
      expect(await post(path, body)).toMatchObject(refused(403, 'READ_ONLY'))
    }
    expect(await fixture.rows()).toMatchObject([{ status: 'dead_letter' }])
    expect(await fixture.sql`select from outbox_pauses`).toHaveLength(0)
  })
})

describe('from another site', () => {
  it.each([
    ['a form', { ...OWN_PAGE, 'content-type': 'text/plain' }, 415, 'NOT_JSON'],
    ['no header of ours', { ...OWN_PAGE, 'x-aftercommit': '' }, 403, 'WRONG_ORIGIN'],
    ['another origin', { ...OWN_PAGE, origin: 'https://evil.example' }, 403, 'WRONG_ORIGIN'],
    ['cross-site', { ...OWN_PAGE, 'sec-fetch-site': 'cross-site' }, 403, 'WRONG_ORIGIN'],
  ])('%s changes nothing', async (_, headers, status, code) => {
    await seed(fixture.sql, [{ status: 'dead_letter' }])
    const { post } = open()
    for (const [path, body] of ACTING) {
      expect(await post(path, body, headers)).toMatchObject(refused(status, code))
    }
    expect(await fixture.rows()).toMatchObject([{ status: 'dead_letter' }])
  })
})

const INJECTION = `'); drop table outbox; --`

describe('input that is none', () => {
  it.each([
    ['events?id=7', /id must be the id of an event/],
    [`events?id=${encodeURIComponent(INJECTION)}`, /id must be/],
    ['events?status=lost', /status must be one of/],
    ['events?order=random', /order must be one of/],
    ['events?limit=0', /limit must be/],
    ['events?limit=1e9', /limit must be/],
    ['events?limit=abc', /limit must be/],
    ['events?after=x', /after must be/],
    ['events?savedSince=yesterday', /savedSince must be a time/],
    ['events?savedBefore=2026-99-99', /savedBefore must be a time/],
    ['events?savedBefore=2026-02-31T00:00:00Z', /savedBefore must be a time/],
    ['events?savedBefore=2026-01-31T12:00:00', /savedBefore must be a time/],
    ['events?topik=orders', /did you mean 'topic'/],
    ['events?topic=a&topic=b', /more than once/],
    ['events?type=%00', /type must be text/],
    ['events/7', /id must be/],
    ['overview?since=soon', /since must be/],
  ])('GET %s', async (path, message) => {
    expect(await open().get(path)).toMatchObject({
      status: 400,
      body: { error: { code: 'BAD_REQUEST', message: expect.stringMatching(message) } },
    })
  })

  const retry = (selection: unknown, more: object = {}) =>
    ['retry', { selection, asOf, ...more }] as const

  it.each<readonly [path: string, body: unknown, message: RegExp]>([
    ['retry', '{', /not valid JSON/],
    ['retry', '[]', /must be a JSON object/],
    ['retry', 'null', /must be a JSON object/],
    ['retry', {}, /asOf must be a time/],
    ['retry', { asOf }, /takes an object/],
    ['retry', { selection: { all: true } }, /asOf must be a time/],
    ['retry', { selection: { all: true }, asOf: 7 }, /asOf must be a time/],
    [...retry({}), /needs at least one field/],
    [...retry({ all: true, type: 'A' }), /needs at least one field/],
    [...retry({ all: 'yes' }), /all must be true/],
    [...retry({ id: [] }), /id must be a list/],
    [...retry({ id: 'x' }), /id must be a list/],
    [...retry({ id: ['x'] }), /id must be the id/],
    [...retry({ id: Array.from({ length: 1_001 }, () => 'x') }), /id must be a list/],
    [...retry({ status: 'published' }), /status must be one of/],
    [...retry({ type: 7 }), /type must be a string/],
    [...retry({ error: {} }), /error must be a string/],
    [...retry({ topic: '\u0000' }), /topic must be text/],
    [...retry({ savedSince: 'x' }), /savedSince must be a time/],
    [...retry({ topik: 'x' }), /did you mean 'topic'/],
    [...retry({ all: true }, { force: true }), /no option 'force'/],
    ['purge', { all: true }, /no option 'all'/],
    ['pause', {}, /topic must be/],
    ['pause', { topic: '' }, /topic must be/],
    ['pause', { topic: 'a', reason: 7 }, /reason must be a string/],
    ['resume', { topic: 7 }, /topic must be/],
    ['preview', { act: 'drop' }, /act must be one of/],
    ['preview', { act: 'retry' }, /takes an object/],
    ['preview', { act: 'pause' }, /topic must be/],
  ])('POST %s %j', async (path, body, message) => {
    await seed(fixture.sql, [{ status: 'dead_letter' }])
    expect(await open().post(path, body)).toMatchObject({
      status: 400,
      body: { error: { code: 'BAD_REQUEST', message: expect.stringMatching(message) } },
    })
    expect(await fixture.rows()).toMatchObject([{ status: 'dead_letter' }])
  })

  it('takes SQL in a text for what it is', async () => {
    await seed(fixture.sql, [{ status: 'dead_letter', type: INJECTION, topic: INJECTION }])
    const { get, post } = open()
    for (const name of ['type', 'topic', 'aggregateType', 'aggregateId']) {
      const found = name === 'type' || name === 'topic' ? 1 : 0
      const { status, body } = await get<{ events: unknown[] }>(
        `events?${name}=${encodeURIComponent(INJECTION)}`,
      )
      expect([status, body.events.length]).toEqual([200, found])
      const selection = { [name]: INJECTION }
      expect((await post('preview', { act: 'discard', selection })).body).toMatchObject({
        count: found,
      })
    }
    expect(await post('retry', { selection: { error: INJECTION }, asOf })).toMatchObject({
      body: { count: 0 },
    })
    expect((await post('pause', { topic: INJECTION, reason: INJECTION })).body).toMatchObject({
      pauses: [{ topic: INJECTION, reason: INJECTION }],
    })
    await post('resume', { topic: INJECTION })
    expect(await fixture.rows()).toHaveLength(1)
  })

  it('reads no body beyond its limit', async () => {
    const { post } = open()
    const error = 'x'.repeat(300_000)
    expect(await post('retry', { selection: { error }, asOf })).toMatchObject(
      refused(413, 'TOO_LARGE'),
    )
  })

  it('knows its addresses and their methods', async () => {
    const { get, post, ask } = open()
    for (const path of ['', 'nothing', 'toString', '__proto__', 'events/a/b']) {
      expect(await get(path)).toMatchObject(refused(404, 'NOT_FOUND'))
    }
    expect(await get('retry')).toMatchObject(refused(405, 'METHOD'))
    expect(await post('overview', {})).toMatchObject(refused(405, 'METHOD'))
    expect(await ask('/api/overview', { method: 'DELETE' })).toMatchObject(refused(405, 'METHOD'))
    expect(await ask('er/api/overview')).toMatchObject(refused(404, 'NOT_FOUND'))
  })
})

it('sends the headers that keep other sites out, with each answer', async () => {
  const { get } = open()
  for (const path of ['overview', 'nothing']) {
    const { headers } = await get(path)
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    )
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('access-control-allow-origin')).toBeNull()
  }
})

function openOn(url: string, logger: Logger) {
  const sql = postgres(url, { max: 6, onnotice: () => {} })
  const publisher = handlersPublisher({ handlers: {} })
  const outbox = createOutbox({ db: postgresJs(sql), publisher, logger })
  return { sql, ...clientOf(dashboard(outbox, { authorize: actor })) }
}

describe('a host name', () => {
  const asked = async (hosts: string[] | undefined, host: string) => {
    const handler = dashboard(fixture.handling({}), { authorize: actor, ...(hosts && { hosts }) })
    const statuses: number[] = []
    for (const path of ['', '/page.js', '/api/overview']) {
      statuses.push((await handler(new Request(`http://${host}/outbox${path}`))).status)
    }
    return statuses
  }

  it('is refused if it is none that the dashboard is to answer to', async () => {
    const hosts = ['Shop.example', 'ops.example:3000']
    expect(await asked(hosts, 'evil.example')).toEqual([403, 403, 403])
    expect(await asked(hosts, 'ops.example')).toEqual([403, 403, 403])
    for (const own of ['shop.example', 'shop.example:8080', 'ops.example:3000', 'localhost:1']) {
      expect(await asked(hosts, own)).toEqual([200, 200, 200])
    }
  })

  it('is any, unless the application says which', async () => {
    expect(await asked(undefined, 'evil.example')).toEqual([200, 200, 200])
  })
})

describe('a database', () => {
  it('that is away is said so, without its address or a stack', async () => {
    const logger = recordingLogger()
    const { sql, get, post } = openOn('postgres://shop:secret@127.0.0.1:1/shop', logger)
    // Not every address: postgres.js waits longer after each attempt, until the dashboard's patience is over.
    for (const path of ['overview', 'events', 'groups', 'doctor']) {
      expect(await get(path)).toMatchObject(refused(503, 'STORE_FAILED'))
    }
    const { body } = await post('retry', all)
    expect(body).toMatchObject({ error: { code: 'STORE_FAILED' } })
    expect(JSON.stringify(body)).not.toMatch(/127\.0\.0\.1|secret|at /)
    expect(logger.lines[0]).toMatchObject({ level: 'warn', fields: { err: expect.any(Error) } })
    await sql.end({ timeout: 0 })
  })

  it('whose role may only read shows everything and changes nothing', async () => {
    const role = uniqueName('reader').replaceAll('-', '_')
    await fixture.sql.unsafe(`create role ${role} login password 'reads-only';
      grant usage on schema public to ${role};
      grant select on outbox, outbox_migrations, outbox_pauses, outbox_instances to ${role}`)
    const url = new URL(directUrl(fixture.url))
    Object.assign(url, { username: role, password: 'reads-only' })
    const { sql, get, post } = openOn(url.href, recordingLogger())
    try {
      await seed(fixture.sql, [
        { id: ID, status: 'dead_letter' },
        { status: 'published', secondsAgo: 30 * 86_400 },
      ])
      for (const path of READING) expect(await get(path)).toMatchObject({ status: 200 })
      for (const [path, body] of ACTING) {
        expect(await post(path, body)).toMatchObject(refused(403, 'ROLE_MAY_NOT'))
      }
      expect(await fixture.rows()).toHaveLength(2)
    } finally {
      await sql.end()
      await fixture.sql.unsafe(`drop owned by ${role}; drop role ${role}`)
    }
  })

  it('whose table is locked keeps nobody waiting, and the page names who holds the lock', async () => {
    const { sql, get, post } = openOn(directUrl(fixture.url), recordingLogger())
    await get('overview')
    const holder = await fixture.sql.reserve()
    await holder`begin`
    await holder`lock table outbox in access exclusive mode`
    try {
      expect(await get('events')).toMatchObject(refused(503, 'LOCKED'))
      for (const [path, body] of ACTING) {
        if (path === 'pause' || path === 'resume') continue
        const { status, body: answer } = await post<Refusal>(path, body)
        expect([path, status, answer.error.code]).toEqual([path, 503, 'LOCKED'])
        expect(answer.error.message).toMatch(/locked by pid \d+ .*pg_terminate_backend/)
      }
      await expect
        .poll(async () => (await get<{ findings: object[] }>('overview')).body.findings, {
          timeout: 20_000,
          interval: 500,
        })
        .toContainEqual(
          expect.objectContaining({
            kind: 'lock',
            what: expect.stringMatching(/locked by pid \d+/),
            remedy: expect.stringContaining('pg_terminate_backend'),
          }),
        )
    } finally {
      await holder`rollback`
      holder.release()
      await sql.end()
    }
  })

  it('in which a session holds the row of an event keeps a discard waiting for seconds, not for ever', async () => {
    const [id] = await seed(fixture.sql, [{ status: 'dead_letter', attempts: 10, error: 'x' }])
    const { sql, post } = openOn(directUrl(fixture.url), recordingLogger())
    const holder = await fixture.sql.reserve()
    await holder`begin`
    await holder`select from outbox where id = ${id!} for update`
    try {
      const soon = new Date(Date.now() + 60_000).toISOString()
      const discard = { selection: { all: true }, asOf: soon }
      expect(await post('discard', discard)).toMatchObject(refused(503, 'LOCKED'))
    } finally {
      await holder`rollback`
      holder.release()
      await sql.end()
    }
  })
})
