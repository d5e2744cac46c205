// `aftercommit dashboard`, the built command: where it listens, whom it lets in, what it permits and how it ends.
import { once } from 'node:events'
import { request } from 'node:http'
import { createServer } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { EventAnswer, Overview } from '../../../src/dashboard/api.ts'
import { type CliRun, type RunningCli, runCli, startCli } from '../../support/built-cli.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { useFixture } from '../../support/fixture.ts'
import { seed } from '../../support/seeded-events.ts'
import { seedInstance } from '../../support/seeded-instances.ts'
import { directUrl } from '../../support/servers/database.ts'

const fixture = useFixture({ partitioned: false })
const TOKEN = 'a-token-that-is-long-enough'

const running: RunningCli[] = []
afterEach(async () => {
  for (const cli of running.splice(0)) cli.signal('SIGTERM')
  await fixture.sql`truncate outbox_pauses`
})

type Started = { readonly cli: RunningCli; readonly url: string }

async function start(
  args: string[] = [],
  { url = fixture.url, env = {} }: { url?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<Started> {
  const cli = await startCli(['dashboard', '--port', '0', '--json', ...args], { url, env })
  running.push(cli)
  await cli.printed('"url"')
  return { cli, url: (JSON.parse(cli.stdout) as { url: string }).url }
}

const api = (url: string, path: string, headers: Record<string, string> = {}) =>
  fetch(`${url}api/${path}`, { headers })

const post = (url: string, path: string, body: object, headers: Record<string, string> = {}) =>
  fetch(`${url}api/${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: {
      'content-type': 'application/json',
      'x-aftercommit': '1',
      origin: new URL(url).origin,
      ...headers,
    },
  })

async function end({ cli }: Started, signal: NodeJS.Signals = 'SIGINT'): Promise<CliRun> {
  cli.signal(signal)
  return await cli.ended
}

const asOf = () => new Date().toISOString()

it('shows the outbox and acts on it, and logs who did what to stderr', async () => {
  await seed(fixture.sql, [{ status: 'dead_letter' }, { status: 'published', secondsAgo: 600 }])
  const started = await start(['--by', 'ada', '--purge-older-than', '1m'])
  const { url } = started
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/)
  const overview = (await (await api(url, 'overview')).json()) as Overview
  expect(overview).toMatchObject({
    table: 'public.outbox',
    acting: { by: 'ada' },
    retention: { publishedMs: 60_000 },
    dead: { count: 1 },
  })
  const retried = await post(url, 'retry', { selection: { all: true }, asOf: asOf() })
  expect(await retried.json()).toEqual({ count: 1 })
  expect(await (await post(url, 'purge', {})).json()).toEqual({ count: 1 })
  await post(url, 'pause', { topic: 'orders', reason: 'moving' })
  await post(url, 'resume', { topic: 'orders' })
  const { code, stderr } = await end(started)
  expect(code).toBe(0)
  const lines = stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as object)
  expect(lines).toMatchObject([
    { message: 'dead letters reset for retry', by: 'ada', count: 1 },
    { message: 'old rows deleted', by: 'ada', deleted: 1 },
    { message: 'a pause was begun by pause()', by: 'ada', topic: 'orders', reason: 'moving' },
    { message: 'a pause was ended by resume()', by: 'ada', topic: 'orders' },
  ])
})

it('lists a dead letter as what an event waits for only if the instances may hold behind it', async () => {
  const [dead, waiting] = await seed(fixture.sql, [{ status: 'dead_letter' }, {}])
  await fixture.sql`update outbox set lane = 7`
  const { url } = await start()
  const behind = async () => {
    const answer = (await (await api(url, `events/${waiting}`)).json()) as EventAnswer
    return answer.behind.map(({ id }) => id)
  }
  try {
    expect(await behind()).toEqual([dead])
    await seedInstance(fixture.sql, { settings: { onDeadLetter: 'continue' } })
    expect(await behind()).toEqual([])
    await seedInstance(fixture.sql, { settings: { onDeadLetter: 'hold' } })
    expect(await behind()).toEqual([dead])
  } finally {
    await fixture.sql`truncate outbox_instances`
  }
})

it('prints its address for people, and ends on SIGTERM while a page is open', async () => {
  const cli = await startCli(['dashboard', '--port', '0'], { url: fixture.url })
  running.push(cli)
  await cli.printed('Ctrl-C ends it')
  const [, url] = /^dashboard at (\S+); Ctrl-C ends it\n$/.exec(cli.stdout)!
  await (await api(url!, 'overview')).json()
  cli.signal('SIGTERM')
  expect(await cli.ended).toMatchObject({ code: 0, stderr: '' })
})

it('purges by the longest retention of the instances, if it was told none', async () => {
  const day = 86_400_000
  await seed(fixture.sql, [
    { status: 'published', secondsAgo: 8 * 86_400 },
    { status: 'published', secondsAgo: 5 * 86_400 },
    { status: 'dead_letter', secondsAgo: 8 * 86_400 },
  ])
  for (const days of [3, 7])
    await seedInstance(fixture.sql, { settings: { retention: days * day } })
  try {
    const { url } = await start()
    const { retention } = (await (await api(url, 'overview')).json()) as Overview
    expect(retention).toEqual({ publishedMs: 7 * day, deadMs: null, isOfInstances: true })
    expect(await (await post(url, 'preview', { act: 'purge' })).json()).toMatchObject({ count: 1 })
    expect(await (await post(url, 'purge', {})).json()).toEqual({ count: 1 })
  } finally {
    await fixture.sql`truncate outbox_instances`
  }
})

it('refuses to purge what nobody has said how long to keep', async () => {
  const { url } = await start()
  for (const answer of [
    await post(url, 'purge', {}),
    await post(url, 'preview', { act: 'purge' }),
  ]) {
    expect([answer.status, await answer.json()]).toMatchObject([
      409,
      { error: { code: 'NO_RETENTION', message: expect.stringContaining('--purge-older-than') } },
    ])
  }
})

describe('with a token', () => {
  it('lets in who has it, and serves nobody else', async () => {
    const { url } = await start([], { env: { AFTERCOMMIT_TOKEN: TOKEN } })
    const authorization = `Bearer ${TOKEN}`
    expect((await api(url, 'overview', { authorization })).status).toBe(200)
    for (const wrong of ['', TOKEN, `Bearer ${TOKEN}x`, 'Bearer ']) {
      const refused = await api(url, 'overview', { authorization: wrong })
      expect([refused.status, await refused.json()]).toMatchObject([
        401,
        { error: { code: 'UNAUTHORIZED' } },
      ])
    }
    // The page itself holds nothing, and is what asks for the token.
    const page = await fetch(url)
    expect(page.status).toBe(200)
    expect(await page.text()).toContain('<meta name="base" content="" />')
    expect((await fetch(`${url}page.js`)).headers.get('content-type')).toContain('javascript')
    const body = { selection: { all: true }, asOf: asOf() }
    expect((await post(url, 'retry', body)).status).toBe(401)
    expect((await post(url, 'retry', body, { authorization })).status).toBe(200)
  })

  it('listens beyond this machine, and never prints the token', async () => {
    const started = await start(['--host', '0.0.0.0'], { env: { AFTERCOMMIT_TOKEN: TOKEN } })
    const { stdout, stderr } = await end(started)
    expect(JSON.parse(stdout)).toMatchObject({ token: true })
    expect(stdout + stderr).not.toContain(TOKEN)
  })
})

describe('a request from elsewhere', () => {
  const asHost = async (url: string, host: string) => {
    const asked = request(`${url}api/overview`, { headers: { host } }).end()
    const [response] = (await once(asked, 'response')) as [{ statusCode: number; resume(): void }]
    response.resume()
    return response.statusCode
  }

  it('is refused by its host name, unless that is allowed', async () => {
    const { url } = await start(['--allow-host', 'ops.example'])
    expect(await asHost(url, 'evil.example')).toBe(403)
    expect(await asHost(url, 'localhost')).toBe(200)
    expect(await asHost(url, 'ops.example:8080')).toBe(200)
  })

  it('is refused by its origin', async () => {
    await seed(fixture.sql, [{ status: 'dead_letter' }])
    const { url } = await start()
    const origin = 'http://evil.example'
    const refused = await post(
      url,
      'discard',
      { selection: { all: true }, asOf: asOf() },
      { origin },
    )
    expect(refused.status).toBe(403)
    expect(await fixture.rows()).toHaveLength(1)
  })
})

describe('read-only', () => {
  const act = async (url: string) => {
    const refused = await post(url, 'discard', { selection: { all: true }, asOf: asOf() })
    return [refused.status, await refused.json()]
  }

  it('with --read-only', async () => {
    await seed(fixture.sql, [{ status: 'dead_letter' }])
    const { url } = await start(['--read-only'])
    expect(await (await api(url, 'overview')).json()).toMatchObject({ acting: null })
    expect(await act(url)).toMatchObject([403, { error: { code: 'READ_ONLY' } }])
    expect(await fixture.rows()).toHaveLength(1)
  })

  describe('with a role that may only read', () => {
    const role = uniqueName('reader').replaceAll('-', '_')
    const url = () => {
      const own = new URL(directUrl(fixture.url))
      return Object.assign(own, { username: role, password: 'reads-only' }).href
    }
    beforeAll(async () => {
      await fixture.sql.unsafe(`create role ${role} login password 'reads-only';
        grant usage on schema public to ${role};
        grant select on outbox, outbox_migrations, outbox_pauses, outbox_instances to ${role}`)
    })
    afterAll(() => fixture.sql.unsafe(`drop owned by ${role}; drop role ${role}`))

    it('by itself, and it says so', async () => {
      await seed(fixture.sql, [{ status: 'dead_letter' }])
      const cli = await startCli(['dashboard', '--port', '0'], { url: url() })
      running.push(cli)
      await cli.printed('Ctrl-C')
      expect(cli.stdout).toContain(`read-only (the role ${role} may only read)`)
      const [, address] = /dashboard at (\S+),/.exec(cli.stdout)!
      for (const path of ['overview', 'events', 'groups', 'doctor']) {
        expect((await api(address!, path)).status).toBe(200)
      }
      expect(await act(address!)).toMatchObject([403, { error: { code: 'READ_ONLY' } }])
      cli.signal('SIGINT')
      await cli.ended
    })

    it('until it may update, and then the database refuses only what it may not', async () => {
      await seed(fixture.sql, [{ status: 'dead_letter' }, { status: 'dead_letter' }])
      await fixture.sql.unsafe(`grant update on outbox to ${role}`)
      const { url: address } = await start(['--by', 'ada'], { url: url() })
      const overview = await api(address, 'overview')
      expect(await overview.json()).toMatchObject({ acting: { by: 'ada' } })
      const selection = { all: true }
      const discarded = await post(address, 'discard', { selection, asOf: asOf() })
      expect([discarded.status, await discarded.json()]).toMatchObject([
        403,
        { error: { code: 'ROLE_MAY_NOT' } },
      ])
      const retried = await post(address, 'retry', { selection, asOf: asOf() })
      expect(await retried.json()).toEqual({ count: 2 })
    })
  })
})

it('begins before the tables are made, says so, and acts once they are', async () => {
  const schema = uniqueName('early').replaceAll('-', '_')
  await fixture.sql.unsafe(`create schema ${schema}`)
  const cli = await startCli(['dashboard', '--port', '0', '--schema', schema], { url: fixture.url })
  running.push(cli)
  await cli.printed('Ctrl-C')
  expect(cli.stdout).toContain(
    `read-only (there is no table ${schema}.outbox yet; aftercommit migrate makes it)`,
  )
  const [, url] = /dashboard at (\S+),/.exec(cli.stdout)!
  expect((await api(url!, 'overview')).status).toBe(503)
  await fixture.store({ schema }).migrate({ partitioned: false })
  await expect
    .poll(async () => await (await api(url!, 'overview')).json(), { timeout: 20_000 })
    .toMatchObject({ acting: { by: expect.any(String) } })
  const retried = await post(url!, 'retry', { selection: { all: true }, asOf: asOf() })
  expect(await retried.json()).toEqual({ count: 0 })
})

describe('refuses to start', () => {
  it.each<[args: string[], env: NodeJS.ProcessEnv, message: string]>([
    [['--host', '0.0.0.0'], {}, 'without a token the dashboard listens on this machine only'],
    [['--host', '::'], {}, 'without a token'],
    [['--host', '0.0.0.0', '--token', ''], {}, 'the token must be'],
    [['--token', 'short'], {}, 'at least 16 characters'],
    [[], { AFTERCOMMIT_TOKEN: 'has a space in it, and more' }, 'printable ASCII'],
    [['--port', '70000'], {}, 'Expected a whole number from 0 to 65535'],
    [['--purge-older-than', '5ms'], {}, 'at least a second'],
    [['--purge-dead-letters-older-than', '5d'], {}, 'needs --purge-older-than'],
    [['--prot', '1'], {}, "unknown option '--prot'"],
  ])('with %j %j', async (args, env, message) => {
    const { code, stdout, stderr } = await runCli(['dashboard', ...args], { url: fixture.url, env })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(message)
  })

  it('without a database, or with one that is away', async () => {
    expect(await runCli(['dashboard', '--no-config'])).toMatchObject({ code: 2 })
    const away = await runCli(['dashboard'], { url: 'postgres://a:secret@127.0.0.1:1/x' })
    expect(away.code).toBe(1)
    expect(away.stderr).toContain('cannot reach the database at 127.0.0.1:1')
  })

  it('on a port that is taken', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as { port: number }
    const { code, stderr } = await runCli(['dashboard', '--port', String(port)], {
      url: fixture.url,
    })
    taken.close()
    expect(code).toBe(1)
    expect(stderr).toContain(`cannot listen on port ${port} of 127.0.0.1 (EADDRINUSE)`)
    expect(stderr).toContain('choose another with --port')
  })
})
