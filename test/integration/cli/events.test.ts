// What the commands show and change, on a real server: events, failures, pauses, old rows, the tables.
import { afterEach, describe, expect, it } from 'vitest'
import { insertOldRows } from '../../support/old-rows.ts'
import { useFixture } from '../../support/fixture.ts'
import { openClient } from '../../support/servers/database.ts'
import { readCli, runCli, startCli } from '../../support/built-cli.ts'
import { seed } from '../../support/seeded-events.ts'
import { seedInstance } from '../../support/seeded-instances.ts'

const fixture = useFixture({ partitioned: false })
const SECRET = 'the-payload-is-secret'
const here = () => ({ url: fixture.url })
const read = <T>(...args: string[]) => readCli<T>(args, here())
const run = (...args: string[]) => runCli(args, here())

afterEach(async () => {
  await fixture.sql`truncate outbox_pauses, outbox_instances`
})

type Listed = { events: { id: string; status: string }[]; next: string | null }

describe('list', () => {
  it('shows events without payloads, the newest first, by every filter and page by page', async () => {
    const ids = await seed(fixture.sql, [
      { secondsAgo: 7_200, status: 'published', payload: SECRET },
      { secondsAgo: 60, status: 'dead_letter', type: 'OrderPaid', error: 'no such account' },
      { secondsAgo: 30, topic: 'carts', aggregateId: 'cart 1' },
      { secondsAgo: 10, status: 'failed', attempts: 2, error: 'timed out', dueInSeconds: 600 },
    ])
    const list = async (...args: string[]) =>
      (await read<Listed>('list', ...args)).events.map(({ id }) => ids.indexOf(id))
    expect(await list()).toEqual([3, 2, 1, 0])
    expect(await list('--oldest')).toEqual([0, 1, 2, 3])
    expect(await list('--status', 'failed')).toEqual([3])
    expect(await list('--type', 'OrderPaid')).toEqual([1])
    expect(await list('--topic', 'carts')).toEqual([2])
    expect(await list('--aggregate-id', 'cart 1', '--aggregate-type', 'order')).toEqual([2])
    expect(await list('--since', '1h')).toEqual([3, 2, 1])
    expect(await list('--before', '1h')).toEqual([0])
    const first = await read<Listed>('list', '--limit', '3')
    expect(first.events).toHaveLength(3)
    expect(await list('--after', first.next!)).toEqual([0])

    const { code, stdout, stderr } = await run('list', '--limit', '3')
    expect(code).toBe(0)
    const [head, newest] = stdout.split('\n')
    expect(head).toMatch(/^ID +SAVED +STATUS +TYPE +AGGREGATE +TOPIC +ATTEMPTS +NEXT +ERROR$/)
    expect(newest).toContain(ids[3])
    expect(newest).toMatch(/ago +failed +OrderPlaced .* 2\/10 +in .* timed out$/)
    expect(stdout).not.toContain(SECRET)
    expect(stdout, 'no colours without a terminal').not.toContain('\u001b')
    expect(stderr).toContain(`--after ${ids[1]}`)
    expect((await run('list', '--exact-times')).stdout).toMatch(/20\d\d-\d\d-\d\dT\d\d:\d\d/)
    // Columns are aligned, and as wide as they have to be.
    expect(head!.length).toBeLessThan(200)
    const place = head!.indexOf('STATUS')
    for (const line of stdout.trimEnd().split('\n').slice(1)) expect(line[place - 1]).toBe(' ')
  })

  it('says that there is nothing', async () => {
    expect(await run('list')).toMatchObject({ code: 0, stdout: 'no events\n', stderr: '' })
  })
})

describe('show', () => {
  it('shows one event, and its payload only on request', async () => {
    const about = { status: 'dead_letter', error: 'refused', secondsAgo: 30 } as const
    const event = { ...about, payload: { card: SECRET } }
    const [id] = await seed(fixture.sql, [event])
    const plain = await run('show', id!)
    expect(plain.code).toBe(0)
    expect(plain.stdout).toContain('refused')
    expect(plain.stdout).toMatch(/saved +.* ago \(20\d\d-/)
    expect(plain.stdout).not.toContain(SECRET)
    expect(plain.stdout).not.toContain('blue')
    expect(JSON.stringify(await read('show', id!))).not.toContain(SECRET)
    expect((await run('show', id!, '--payload')).stdout).toContain(SECRET)
    expect(await read('show', id!, '--payload')).toMatchObject({
      payload: JSON.stringify({ card: SECRET }),
      headers: { tenant: 'blue' },
    })
  })

  it('names a process only while it holds the event', async () => {
    const [id] = await seed(fixture.sql, [{ dueInSeconds: 600 }])
    await fixture.sql`update outbox set worker_id = 'worker-7', lease_token = gen_random_uuid()`
    expect((await run('show', id!)).stdout).toMatch(/^worker +worker-7$/m)
    await fixture.sql`update outbox set lease_token = null`
    expect((await run('show', id!)).stdout).toMatch(/^worker +-$/m)
  })

  it('says that an event waits for a topic or a broker out of reach, as list does', async () => {
    const ids = await seed(fixture.sql, [
      { topic: 'orders' },
      { topic: 'carts' },
      { topic: 'mails' },
      { topic: 'carts', status: 'failed', attempts: 1, dueInSeconds: 600 },
    ])
    const next = async () =>
      Promise.all(
        ids.map(async (id) => /^next +(.*?)(?:;|$)/m.exec((await run('show', id)).stdout)?.[1]),
      )
    const report = (publisher: string, topic: string | null) => ({
      circuits: [{ publisher, topic, forMs: 9_000, error: 'Error: gone' }],
    })
    await seedInstance(fixture.sql, { seenSecondsAgo: 300, report: report('kafka', 'mails') })
    expect(await next()).toEqual(['due', 'due', 'due', expect.stringMatching(/^in \d+ min/)])
    await seedInstance(fixture.sql, { report: report('kafka', 'orders') })
    await seedInstance(fixture.sql, { topics: ['carts'], report: report('kafka', null) })
    const [orders, carts, mails, resting] = await next()
    expect([orders, carts, mails]).toEqual(['waits for the topic', 'waits for the broker', 'due'])
    expect(resting).toMatch(/^in \d+ min/)
    const { stdout } = await run('list', '--topic', 'orders')
    expect(stdout).toMatch(/ 0\/10 +waits for the topic/)
  })

  it('fails for an event that is not there', async () => {
    const { code, stderr } = await run('show', '019c0f5e-7b4a-7000-8000-000000000000')
    expect(code).toBe(1)
    expect(stderr).toContain('there is no event 019c0f5e')
  })
})

it('tails events as they are saved and as they change, until it is interrupted', async () => {
  const [old] = await seed(fixture.sql, [{ status: 'published' }])
  const tail = await startCli(['tail', '--interval', '100ms', '--json'], here())
  await tail.printed(old!)
  const [fresh, other] = await seed(fixture.sql, [{ payload: SECRET }, { topic: 'carts' }])
  await tail.printed(other!)
  await fixture.sql`update outbox set status = 'published', published_at = now() where id = ${fresh!}`
  await tail.printed(`"id":"${fresh}","seq":`)
  const states = () =>
    tail.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: string; status: string })
      .filter(({ id }) => id === fresh)
      .map(({ status }) => status)
  await expect.poll(states, { timeout: 30_000 }).toEqual(['pending', 'published'])
  tail.signal('SIGINT')
  const { code, stdout } = await tail.ended
  expect(code).toBe(0)
  expect(stdout).not.toContain(SECRET)
})

it('tails one topic for people', async () => {
  const [shown, hidden] = await seed(fixture.sql, [{ topic: 'carts' }, { topic: 'orders' }])
  const tail = await startCli(['tail', '--topic', 'carts'], here())
  await tail.printed(shown!)
  tail.signal('SIGTERM')
  const { stdout } = await tail.ended
  expect(stdout).not.toContain(hidden)
  const [head, line] = stdout.split('\n')
  expect(head).toMatch(/^TIME +STATUS +ID +TYPE +TOPIC +AGGREGATE$/)
  expect(line).toMatch(/^\d\d:\d\d:\d\d {2}pending +[\da-f-]{36} {2}OrderPlaced +carts +order /)
  expect(line!.indexOf('carts')).toBe(head!.indexOf('TOPIC'))
})

describe('failures', () => {
  const troubled = () =>
    seed(fixture.sql, [
      { status: 'dead_letter', error: 'order 17 has no address', attempts: 10 },
      { status: 'dead_letter', error: 'order 4 has no address', attempts: 10 },
      { status: 'dead_letter', error: 'refused', topic: 'carts', attempts: 1 },
      { status: 'failed', error: 'timed out', attempts: 3, dueInSeconds: 3_600 },
      { status: 'published' },
    ])
  const statuses = async () => (await fixture.rows()).map(({ status }) => status)

  it('shows groups, and retries or discards one by its key', async () => {
    await troubled()
    const groups = await read<{ key: string; count: number; error: string }[]>('groups')
    expect(groups).toMatchObject([
      { count: 2, status: 'dead_letter', type: 'OrderPlaced', topic: 'orders', exact: true },
      { count: 1 },
      { count: 1 },
    ])
    const [large] = groups
    const { stdout } = await run('groups')
    expect(stdout).toContain(large!.key)
    expect((await run('failures')).stdout).toContain(large!.key)
    // The newest of the group, as it was recorded, and no error twice.
    expect(stdout).toMatch(/^ {4}order 4 has no address$/m)
    expect(stdout.split('refused')).toHaveLength(2)
    const refused = await run('retry', '--group', large!.key)
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toContain('this would retry 2 events; nothing was changed; pass --yes')
    expect(await statuses()).toEqual([
      'dead_letter',
      'dead_letter',
      'dead_letter',
      'failed',
      'published',
    ])
    expect(await read('retry', '--group', large!.key, '--yes')).toEqual({ retried: 2 })
    expect(await statuses()).toEqual(['pending', 'pending', 'dead_letter', 'failed', 'published'])
    const timedOut = groups.find(({ error }) => error === 'timed out')
    expect(await read('discard', '--group', timedOut!.key, '--yes')).toEqual({ discarded: 1 })
    expect(await statuses()).toEqual(['pending', 'pending', 'dead_letter', 'published'])
  })

  it('retries one by its id without asking, and many after a yes', async () => {
    const [first] = await troubled()
    expect(await run('retry', first!)).toMatchObject({ code: 0, stdout: '1 retried\n' })
    expect(await statuses()).toEqual([
      'pending',
      'dead_letter',
      'dead_letter',
      'failed',
      'published',
    ])
    expect(await run('retry', '--all')).toMatchObject({ code: 2 })
    expect(await read('retry', '--topic', 'orders', '--since', '1h')).toEqual({ retried: 1 })
    expect(await read('retry', '--all', '--yes')).toEqual({ retried: 1 })
    expect(await statuses()).toEqual(['pending', 'pending', 'pending', 'failed', 'published'])
  })

  it('sends a failing event now, with the attempts that it has', async () => {
    const ids = await troubled()
    const resting = () => fixture.rows().then((rows) => rows[3])
    const wrongKind = await run('retry', ids[3]!)
    expect(wrongKind).toMatchObject({ code: 1, stdout: '0 retried\n' })
    expect(wrongKind.stderr).toContain('--now')
    expect(await resting()).toMatchObject({ status: 'failed', available: false })
    expect(await read('retry', ids[3]!, '--now')).toEqual({ retried: 1 })
    expect(await resting()).toMatchObject({ status: 'failed', available: true, attempts: 3 })
  })

  it('fails for ids and groups that are not there, and changes the others', async () => {
    const [first] = await troubled()
    const unknown = '019c0f5e-7b4a-7000-8000-000000000000'
    for (const act of ['retry', 'discard']) {
      const group = await run(act, '--group', 'nope', '--yes')
      expect(group).toMatchObject({ code: 1, stdout: '' })
      expect(group.stderr).toContain('there is no group nope')
      const alone = await run(act, unknown, '--yes', '--json')
      expect(alone.code).toBe(1)
      expect(JSON.parse(alone.stderr)).toMatchObject({ error: { code: 'NOT_FOUND' } })
    }
    const both = await run('retry', first!, unknown, '--yes')
    expect(both).toMatchObject({ code: 1, stdout: '1 retried\n' })
    expect(both.stderr).toContain('1 of the events were not retried')
    for (const act of ['retry', 'discard']) {
      const none = await run(act, '--topic', 'unknown')
      expect(none).toMatchObject({ code: 0, stderr: expect.stringContaining('nothing matched') })
    }
  })

  it('discards nothing without a yes, and then what was named', async () => {
    await troubled()
    const refused = await run('discard', '--topic', 'carts')
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('this would delete one event for good')
    expect(await statuses()).toHaveLength(5)
    expect(await read('discard', '--topic', 'carts', '--yes')).toEqual({ discarded: 1 })
    expect(await read('discard', '--all', '--yes')).toEqual({ discarded: 2 })
    expect(await read('discard', '--failing', '--all', '--yes')).toEqual({ discarded: 1 })
    expect(await statuses()).toEqual(['published'])
    expect((await run('groups')).stdout).toBe('nothing has failed\n')
  })
})

describe('pause and resume', () => {
  it('pauses a topic, says why, and resumes it', async () => {
    const about = ['--reason', 'consumer moves', '--by', 'ada']
    expect(await read('pause', 'orders', ...about)).toEqual({ topic: 'orders', paused: true })
    expect(await read('pause', 'orders')).toEqual({ topic: 'orders', paused: false })
    expect(await read('status')).toMatchObject({
      pauses: [{ topic: 'orders', by: 'ada', reason: 'consumer moves' }],
    })
    expect((await run('status')).stdout).toMatch(
      /paused +topic orders \(.* by ada: consumer moves\)/,
    )
    expect(await read('resume', 'carts')).toMatchObject({ resumed: false })
    expect((await run('resume')).stdout).toBe('there was no pause of everything\n')
    expect(await read('resume', 'orders')).toMatchObject({ resumed: true, stillPaused: [] })
    expect(await read('status')).toMatchObject({ pauses: [] })
  })

  it('says that a topic may be mistyped, and pauses it all the same', async () => {
    await seed(fixture.sql, [{ topic: 'orders', status: 'published' }, { topic: 'carts' }])
    expect(await run('pause', 'ordres')).toEqual({
      code: 0,
      stdout: "the topic 'ordres' is paused; all instances obey within 15 seconds\n",
      stderr:
        "no waiting or recent event is for the topic 'ordres', and no running instance names it; check the spelling\n",
    })
    await seedInstance(fixture.sql, { topics: ['payments'] })
    for (const topic of ['orders', 'carts', 'payments']) {
      expect(await run('pause', topic)).toMatchObject({ code: 0, stderr: '' })
    }
  })

  it('pauses everything only after a yes, and says how much would wait', async () => {
    await seedInstance(fixture.sql)
    await seed(fixture.sql, [{}, {}, { status: 'published' }])
    const refused = await run('pause')
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('2 events unsent now')
    expect(await read('status')).toMatchObject({ pauses: [] })
    expect(await read('pause', '--yes')).toEqual({ topic: null, paused: true })
    await run('pause', 'orders')
    const resumed = await run('resume')
    expect(resumed).toMatchObject({ code: 0, stdout: 'the pause of everything has ended\n' })
    expect(resumed.stderr).toContain('still paused: orders')
  })

  it('says of each unsent event whether it is paused', async () => {
    const ids = await seed(fixture.sql, [
      { topic: 'orders' },
      { topic: 'carts' },
      { topic: 'orders', status: 'published' },
    ])
    const paused = async () => {
      const { events } = await read<{ events: { id: string; isPaused: boolean }[] }>('list')
      const found = new Set(events.filter(({ isPaused }) => isPaused).map(({ id }) => id))
      return ids.map((id) => found.has(id))
    }
    expect(await paused()).toEqual([false, false, false])
    await run('pause', 'orders')
    expect(await paused()).toEqual([true, false, false])
    expect(await read('list', '--status', 'pending')).toMatchObject({
      events: [{ isPaused: false }, { isPaused: true }],
    })
    expect((await run('list', '--topic', 'orders')).stdout).toMatch(/ 0\/10 +paused/)
    expect(await read('show', ids[0]!)).toMatchObject({ isPaused: true })
    expect((await run('show', ids[0]!)).stdout).toMatch(/^next +paused; see aftercommit status$/m)
    await run('resume', 'orders')
    await run('pause', '--yes')
    expect(await paused()).toEqual([true, true, false])
  })

  it('pauses what a running instance sends', async () => {
    await read('pause', 'order')
    const handled: string[] = []
    const handlers = { OrderCompleted: ({ id }: { id: string }) => void handled.push(id) }
    const outbox = fixture.handling(handlers, { poller: true, pollInterval: '50ms' })
    await outbox.start()
    await outbox.withOutbox(async (_, emit) =>
      emit({ type: 'OrderCompleted', aggregateType: 'order', aggregateId: '1', payload: 1 }),
    )
    const instances = await read<{ workerId: string }[]>('instances')
    expect(instances).toMatchObject([{ pid: process.pid, immediate: true, poller: true }])
    expect((await run('instances')).stdout).toContain('immediate + fallback')
    expect(handled).toEqual([])
    await read('resume', 'order')
    await expect.poll(() => handled.length, { timeout: 30_000 }).toBe(1)
  })
})

describe('purge', () => {
  it('says what it would delete, asks, and deletes that', async () => {
    await insertOldRows(fixture.sql, { count: 1_500, status: 'published', days: 8 })
    await insertOldRows(fixture.sql, { count: 2, status: 'dead_letter', days: 40 })
    await insertOldRows(fixture.sql, { count: 3, status: 'published', days: 1 })
    const week = ['purge', '--older-than', '7d']
    const all = [...week, '--dead-letters-older-than', '30d']
    expect(await read(...all, '--dry-run')).toMatchObject({
      published: { count: 1_500, exact: true },
      deadLetters: { count: 2 },
      partitions: [],
    })
    expect((await run(...week, '--dry-run')).stdout).toContain('would delete 1500 published events')
    const refused = await run(...week)
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('this would delete 1500 published events for good')
    expect(await fixture.rows()).toHaveLength(1_505)
    expect(await read(...week, '--yes')).toEqual({ deleted: 1_500 })
    expect(await read(...all, '--yes')).toEqual({ deleted: 2 })
    expect(await fixture.rows()).toHaveLength(3)
  })

  it('drops partitions, and says which it would drop', async () => {
    await fixture.store({ schema: 'parted' }).migrate({ partitioned: true })
    // As if the table had been partitioned for a week.
    await fixture.sql.unsafe(`set search_path to parted;
      alter table outbox detach partition outbox_before; drop table outbox_before;
      select outbox_make_day((now() at time zone 'utc')::date - 5, null); set search_path to default`)
    const sql = fixture.sql
    await insertOldRows(sql, { count: 4, status: 'published', days: 5, table: 'parted.outbox' })
    const purge = ['purge', '--schema', 'parted', '--older-than', '3d']
    const found = await read<{ partitions: string[] }>(...purge, '--dry-run')
    expect(found).toMatchObject({ published: { count: 4, exact: true } })
    expect(found.partitions).toHaveLength(1)
    expect(await read(...purge, '--yes')).toEqual({ deleted: 4 })
    expect(await read(...purge, '--dry-run')).toMatchObject({ partitions: [] })
  })
})

/** A script with a transaction of its own, as psql would run it. */
async function runAlone(script: string): Promise<void> {
  const client = openClient(fixture.url, { max: 1 })
  await client.unsafe(script)
  await client.end()
}

describe('migrate', () => {
  it('creates the tables, once, also partitioned', async () => {
    const names = ['--schema', 'moved', '--table', 'events']
    const first = await read<{ applied: string[] }>('migrate', ...names)
    expect(first.applied).toContain('0000_create_outbox.sql')
    expect(await run('migrate', ...names)).toMatchObject({ stdout: 'the tables are up to date\n' })
    expect(await read('status', ...names)).toMatchObject({ ok: true })
    expect(await read('migrate', ...names, '--partitioned')).toEqual({
      applied: ['partitioned/0000_partitions.sql'],
    })
    expect(await read('status', ...names)).toMatchObject({ ok: true })
  })

  it.each([
    ['plain', []],
    ['partitioned', ['--partitioned']],
  ])('prints a script that makes the same tables: %s', async (kind, options) => {
    const names = ['--schema', `Scripted "${kind}"`, '--table', "it's"]
    const { code, stdout } = await runCli(['migrate', '--sql', ...options, ...names])
    expect(code).toBe(0)
    const first = stdout.search(/create|alter|lock table/i)
    expect(stdout.slice(0, first)).toContain("set local lock_timeout to '2s';")
    await runAlone(stdout)
    expect(await read('migrate', ...names)).toEqual({ applied: [] })
    const again = await run('migrate', '--sql', ...options, ...names)
    expect(again).toMatchObject({ code: 0, stdout: '' })
    expect(again.stderr).toContain('up to date')
    const all = await run('migrate', '--sql', '--all', ...options, ...names)
    expect(all.stdout).toBe(stdout)
    const { stdout: found } = await run('doctor', '--json', ...names)
    const { findings } = JSON.parse(found) as { findings: { severity: string }[] }
    expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
  })
})
