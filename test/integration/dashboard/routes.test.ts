// Each route of the dashboard's server on a real database: what it returns, what it changes, and what it logs.
import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import type {
  Changed,
  DoctorAnswer,
  EventAnswer,
  EventContent,
  EventsAnswer,
  GroupsAnswer,
  HistoryAnswer,
  Overview,
  PauseAnswer,
  Preview,
} from '../../../src/dashboard/api.ts'
import { dashboard, type DashboardOptions } from '../../../src/dashboard/dashboard.ts'
import type { OutboxOptions } from '../../../src/index.ts'
import { clientOf, refused } from '../../support/dashboard-client.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { useFixture } from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { nextEvent } from '../../support/timing/wait-until.ts'
import { seed } from '../../support/seeded-events.ts'
import { seedInstance } from '../../support/seeded-instances.ts'

const fixture = useFixture()

afterEach(() => fixture.sql`truncate outbox_pauses, outbox_instances`)

function open(
  options: Partial<DashboardOptions> = {},
  outboxOptions: Partial<Pick<OutboxOptions, 'retention'>> = {},
) {
  const logger = recordingLogger()
  const outbox = fixture.handling({ OrderPlaced: () => {} }, { logger, ...outboxOptions })
  const authorize = () => ({ by: 'ada', mayAct: true })
  return { outbox, logger, ...clientOf(dashboard(outbox, { authorize, ...options })) }
}

describe('overview', () => {
  it('shows what the table holds, who runs, what is paused and what is wrong', async () => {
    const { outbox, get } = open()
    await outbox.start()
    await outbox.pause('orders', { by: 'grace', reason: 'moving' })
    await seed(fixture.sql, [
      { status: 'dead_letter', error: 'refused' },
      { secondsAgo: 120 },
      { status: 'published' },
    ])
    const { status, body } = await get<Overview>('overview')
    expect(status).toBe(200)
    expect(body).toMatchObject({
      table: 'public.outbox',
      acting: { by: 'ada' },
      retention: { publishedMs: 7 * 86_400_000, deadMs: null },
      pending: { count: 1, exact: true },
      dead: { count: 1, exact: true },
      published: { count: 1, exact: true },
      pauses: [{ topic: 'orders', by: 'grace', reason: 'moving' }],
      instances: [{ pid: process.pid, isLost: false, immediate: true, inFlight: 0, circuits: [] }],
      sampleMs: 5_000,
      samples: [{ pending: 1, dead: 1 }],
      latency: [{ type: 'OrderPlaced', events: 1 }],
      types: ['OrderPlaced'],
    })
    expect(body.oldestMs).toBeGreaterThanOrEqual(120_000)
    expect(body.findings.map(({ kind }) => kind)).toEqual(['no-instance', 'lag', 'dead', 'paused'])
    expect(Math.abs(Date.parse(body.now) - Date.now())).toBeLessThan(10_000)
    const again = await get<Overview>(`overview?since=${body.samples[0]!.at}`)
    expect(again.body.samples).toEqual([])
  })

  it('says that a person may only look', async () => {
    const { get } = open({ authorize: () => ({ by: 'ada' }) })
    expect((await get<Overview>('overview')).body.acting).toBeNull()
  })
})

describe('history', () => {
  it('shows what an instance did before, after it has stopped and to another process', async () => {
    const writer = open()
    await writer.outbox.start()
    const published = nextEvent(writer.outbox.events, 'event:published')
    await writer.outbox.withOutbox(async (_, emit) => emit(newEvent({ type: 'OrderPlaced' })))
    await published
    // What the page looks at is remembered too.
    await writer.get<Overview>('overview')
    await writer.outbox.stop()
    const { get } = open()
    const { status, body } = await get<HistoryAnswer>('history')
    expect(status).toBe(200)
    expect(body).toMatchObject({ stepMs: 60_000, topics: ['order'] })
    expect(body.instances).toMatchObject([{ state: 'stopped' }])
    const events = body.samples.reduce((sum, { immediate }) => sum + immediate! * 60, 0)
    expect(events).toBeCloseTo(1)
    expect(body.samples.at(-1)).toMatchObject({ pending: 0, dead: 0 })
    const of = async (query: string) => {
      const { body: filtered } = await get<HistoryAnswer>(`history?${query}`)
      return filtered.samples.reduce((sum, { immediate }) => sum + immediate! * 60, 0)
    }
    expect(await of('topic=order')).toBeCloseTo(1)
    expect(await of('topic=payments')).toBe(0)
    expect(await of(`instance=${body.instances[0]!.id}`)).toBeCloseTo(1)
    expect(await of('instance=another')).toBe(0)
    expect(await get('history?colour=red')).toMatchObject(refused(400, 'BAD_REQUEST'))
  })
})

describe('events', () => {
  it('finds them by each field, and by several', async () => {
    const { get } = open()
    const [first, second, third] = await seed(fixture.sql, [
      { type: 'OrderPaid', topic: 'payments', secondsAgo: 300 },
      { aggregateId: 'order-1', status: 'published', secondsAgo: 200 },
      { aggregateId: 'order-1', status: 'dead_letter', error: 'refused', secondsAgo: 100 },
    ])
    const find = async (query: string) => {
      const { body } = await get<EventsAnswer>(`events?${query}`)
      return body.events.map(({ id }) => id)
    }
    const ago = (seconds: number) => new Date(Date.now() - seconds * 1_000).toISOString()
    expect(await find('')).toEqual([third, second, first])
    expect(await find('order=oldest')).toEqual([first, second, third])
    expect(await find(`id=${second}`)).toEqual([second])
    expect(await find('status=pending,dead_letter')).toEqual([third, first])
    expect(await find('type=OrderPaid')).toEqual([first])
    expect(await find('topic=payments')).toEqual([first])
    expect(await find('aggregateType=order&aggregateId=order-1')).toEqual([third, second])
    expect(await find(`savedSince=${ago(250)}&savedBefore=${ago(150)}`)).toEqual([second])
    expect(await find('aggregateId=order-1&status=published')).toEqual([second])
    expect(await find('type=')).toEqual([third, second, first])
  })

  it('shows them page by page, without payload and headers', async () => {
    const { get } = open()
    const ids = await seed(fixture.sql, [{}, {}, {}])
    const first = await get<EventsAnswer>('events?limit=2')
    expect(first.body.events).toHaveLength(2)
    expect(JSON.stringify(first.body)).not.toMatch(/total|tenant/)
    const rest = await get<EventsAnswer>(`events?limit=2&after=${first.body.next}`)
    expect(rest.body).toMatchObject({ events: [{ id: ids[0] }], next: null, lookedUntil: null })
  })

  it('says which of them are paused', async () => {
    const { outbox, get } = open()
    await outbox.pause('orders')
    await seed(fixture.sql, [{ topic: 'orders' }, { topic: 'carts' }, { status: 'published' }])
    const { body } = await get<EventsAnswer>('events?order=oldest')
    expect(body.events.map(({ isPaused }) => isPaused)).toEqual([true, false, false])
  })

  it('says what is out of reach for them, as the CLI does', async () => {
    const { get } = open()
    const circuits = [{ publisher: 'kafka', topic: 'orders', forMs: 1_000, error: 'away' }]
    await seedInstance(fixture.sql, { report: { circuits } })
    const [id] = await seed(fixture.sql, [{}, { topic: 'carts' }, { status: 'published' }])
    const { body } = await get<EventsAnswer>('events?order=oldest')
    expect(body.events.map(({ waitsFor }) => waitsFor)).toEqual(['topic', null, null])
    expect((await get<EventAnswer>(`events/${id}`)).body.waitsFor).toBe('topic')
  })

  it('shows one with its history, and its content behind another request', async () => {
    const { get } = open()
    const [id] = await seed(fixture.sql, [{ status: 'failed', attempts: 2, error: 'refused' }])
    const { body } = await get<EventAnswer>(`events/${id}`)
    expect(body).toMatchObject({ id, status: 'failed', attempts: 2, error: 'refused', behind: [] })
    expect(JSON.stringify(body)).not.toMatch(/total|tenant/)
    expect((await get<EventContent>(`events/${id}/content`)).body).toEqual({
      payload: '{"total":42}',
      headers: { tenant: 'blue' },
      isRedacted: false,
    })
  })

  it('shows what redact makes of the content, and nothing when it throws', async () => {
    const { get } = open({
      redact: ({ type, topic, payload, headers }) => {
        if (type === 'Secret') throw new Error('the payload 42 is secret')
        return {
          payload: { was: payload, type, topic },
          headers: { tenant: `not ${headers['tenant']}` },
        }
      },
    })
    const [id, secret] = await seed(fixture.sql, [{}, { type: 'Secret' }])
    expect((await get<EventContent>(`events/${id}/content`)).body).toEqual({
      payload: '{"was":{"total":42},"type":"OrderPlaced","topic":"orders"}',
      headers: { tenant: 'not blue' },
      isRedacted: true,
    })
    const answer = await get(`events/${secret}/content`)
    expect(answer).toMatchObject(refused(500, 'REDACT_FAILED'))
    expect(JSON.stringify(answer.body)).not.toMatch(/42/)
  })

  it('says when there is no such event', async () => {
    const { get } = open()
    for (const path of ['', '/content']) {
      expect(await get(`events/${randomUUID()}${path}`)).toMatchObject(refused(404, 'NO_EVENT'))
    }
  })
})

describe('failures', () => {
  it('shows them in groups', async () => {
    const { get } = open()
    await seed(fixture.sql, [
      { status: 'dead_letter', error: 'order 1 has no address' },
      { status: 'dead_letter', error: 'order 22 has no address' },
      { status: 'failed', attempts: 1, error: 'timeout' },
    ])
    expect((await get<GroupsAnswer>('groups')).body.groups).toMatchObject([
      { status: 'dead_letter', error: 'order <number> has no address', count: 2, exact: true },
      { status: 'failed', error: 'timeout', count: 1 },
    ])
  })

  it('counts what a change would touch, and changes no more than that', async () => {
    const { post, logger } = open()
    const [dead] = await seed(fixture.sql, [
      { status: 'dead_letter', error: 'order 1 has no address', secondsAgo: 60 },
      { status: 'failed', attempts: 1, error: 'timeout', dueInSeconds: 600 },
    ])
    const selection = {
      status: 'dead_letter',
      type: 'OrderPlaced',
      error: 'order <number> has no address',
    }
    const { body } = await post<Preview>('preview', { act: 'retry', selection })
    expect(body).toEqual({ count: 1, exact: true, asOf: expect.any(String) })
    // Died after the count.
    await seed(fixture.sql, [
      { status: 'dead_letter', error: 'order 2 has no address', secondsAgo: -5 },
    ])
    const { status, body: changed } = await post<Changed>('retry', { selection, asOf: body.asOf })
    expect([status, changed]).toEqual([200, { count: 1 }])
    const rows = await fixture.rows()
    expect(rows.filter(({ status: one }) => one === 'pending').map(({ id }) => id)).toEqual([dead])
    expect(logger.lines).toContainEqual({
      level: 'info',
      fields: expect.objectContaining({ by: 'ada', count: 1 }),
      message: 'dead letters reset for retry',
    })
  })

  it('retries what rests and discards by ids, by time and all', async () => {
    const { post } = open()
    const ids = await seed(fixture.sql, [
      { status: 'failed', attempts: 1, dueInSeconds: 600, secondsAgo: 300 },
      { status: 'dead_letter', secondsAgo: 200 },
      { status: 'dead_letter', secondsAgo: 100 },
      { status: 'dead_letter', secondsAgo: 50 },
    ])
    const asOf = new Date().toISOString()
    const act = async (name: string, selection: object) =>
      (await post<Changed>(name, { selection, asOf })).body.count
    const ago = (seconds: number) => new Date(Date.now() - seconds * 1_000).toISOString()
    expect(await act('retry', { status: 'failed', savedBefore: ago(250) })).toBe(1)
    expect(await act('discard', { id: [ids[1]] })).toBe(1)
    expect(await act('discard', { savedSince: ago(70), status: 'dead_letter' })).toBe(1)
    expect(await act('discard', { all: true })).toBe(2)
    expect(await fixture.rows()).toEqual([])
  })

  it('purges what is past its retention', async () => {
    const { post, logger } = open({}, { retention: '1m' })
    await seed(fixture.sql, [
      { status: 'published', secondsAgo: 3 * 86_400 },
      { status: 'published' },
    ])
    expect((await post<Preview>('preview', { act: 'purge' })).body).toMatchObject({ count: 1 })
    expect((await post<Changed>('purge', {})).body).toEqual({ count: 1 })
    expect(logger.lines).toContainEqual({
      level: 'info',
      fields: { by: 'ada', deleted: 1 },
      message: 'old rows deleted',
    })
  })
})

describe('pauses', () => {
  it('pauses and resumes a topic and everything, and says by whom', async () => {
    const { post, get, logger, outbox } = open()
    await get('overview')
    await seed(fixture.sql, [{ topic: 'orders' }, { topic: 'carts' }])
    const count = async (topic: string | null) =>
      (await post<Preview>('preview', { act: 'pause', topic })).body.count
    expect([await count('orders'), await count(null)]).toEqual([1, 2])
    const paused = await post<PauseAnswer>('pause', { topic: 'orders', reason: 'moving' })
    expect(paused.body).toMatchObject({
      changed: true,
      pauses: [{ topic: 'orders', by: 'ada', reason: 'moving' }],
    })
    expect(logger.lines).toContainEqual(
      expect.objectContaining({ fields: { topic: 'orders', by: 'ada', reason: 'moving' } }),
    )
    const again = await post<PauseAnswer>('pause', { topic: 'orders' })
    expect(again.body.changed).toBe(false)
    await post('pause', { topic: null })
    // At once, although the last look is older.
    expect((await get<Overview>('overview')).body.pauses).toHaveLength(2)
    const resumed = await post<PauseAnswer>('resume', { topic: null })
    expect(resumed.body).toMatchObject({ changed: true, pauses: [{ topic: 'orders' }] })
    expect(logger.lines).toContainEqual({
      level: 'info',
      fields: { topic: null, by: 'ada' },
      message: 'a pause was ended by resume()',
    })
    expect(await outbox.pauses()).toMatchObject([{ topic: 'orders' }])
  })
})

it('names the topics that events can be moved to', async () => {
  const { post } = open()
  await seedInstance(fixture.sql, { topics: ['carts'] })
  await seed(fixture.sql, [{ topic: 'ordres' }, { topic: 'orders', status: 'published' }])
  const { body } = await post<Preview>('preview', { act: 'reroute', topic: 'ordres' })
  expect(body).toMatchObject({ count: 1, topics: ['carts', 'orders', 'ordres'] })
})

it('examines the table as the doctor does', async () => {
  const { get } = open()
  await seed(fixture.sql, [{ status: 'dead_letter', type: 'OrderPaid' }])
  const { body } = await get<DoctorAnswer>('doctor')
  expect(body.checked).toEqual(expect.arrayContaining(['schema', 'grants', 'transactions']))
  expect(body.findings).toContainEqual(
    expect.objectContaining({
      kind: 'dead',
      severity: 'warning',
      remedy: expect.any(String),
    }),
  )
})
