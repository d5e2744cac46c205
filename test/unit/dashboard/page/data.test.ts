// What the page makes of what it is told, without a browser.
import { describe, expect, it } from 'vitest'
import type { EventAnswer, Overview } from '../../../../src/dashboard/api.ts'
import { ApiError } from '../../../../src/dashboard/page/data/client.ts'
import { splitCommands } from '../../../../src/dashboard/page/data/commands.ts'
import {
  formatFilter,
  parseFilter,
  topicToMove,
  toQuery,
  toSelection,
} from '../../../../src/dashboard/page/data/event-filter.ts'
import * as format from '../../../../src/dashboard/page/data/format.ts'
import { parseRoute } from '../../../../src/dashboard/page/data/route.ts'
import {
  addSamples,
  columnsOf,
  joinHistory,
  type Point,
  spanOf,
  trendOf,
} from '../../../../src/dashboard/page/data/samples.ts'
import { readSearch } from '../../../../src/dashboard/page/data/search.ts'
import { stepsOf } from '../../../../src/dashboard/page/data/timeline.ts'
import { judge } from '../../../../src/dashboard/page/data/verdict.ts'

const NOW = Date.parse('2026-11-18T12:00:00Z')

describe('the filter of events', () => {
  it('is the same after a way through the address', () => {
    const query = 'status=failed,dead_letter&type=a+%26+b&savedSince=1h&order=oldest'
    expect(formatFilter(parseFilter(query))).toBe(query)
  })

  it('drops what it does not know', () => {
    expect(parseFilter('status=lost&color=red&order=sideways')).toEqual({
      status: [],
      order: 'newest',
    })
  })

  it('asks the server since when a span began', () => {
    expect(toQuery(parseFilter('savedSince=1h&topic=orders'), NOW)).toEqual({
      topic: 'orders',
      savedSince: '2026-11-18T11:00:00.000Z',
      order: 'newest',
    })
  })

  it.each([
    ['', { all: true }],
    ['status=dead_letter', { status: 'dead_letter' }],
    ['status=pending,failed&topic=orders', { status: 'failed', topic: 'orders' }],
    ['status=failed,dead_letter&topic=orders', { topic: 'orders' }],
    ['status=failed,dead_letter', { all: true }],
    ['status=published', null],
    ['status=pending', null],
  ])('selects for an action by %s', (query, selection) => {
    expect(toSelection(parseFilter(query), NOW)).toEqual(selection)
  })
})

it.each([
  ['topic=ordres', 'ordres'],
  ['topic=ordres&status=pending,failed&order=oldest', 'ordres'],
  ['topic=ordres&status=pending,failed,dead_letter', 'ordres'],
  ['topic=ordres&status=failed', null],
  ['topic=ordres&type=OrderPlaced', null],
  ['topic=ordres&savedSince=1h', null],
  ['status=pending,failed', null],
  ['', null],
])('offers a move only where the list shows all that it would move: %s', (query, topic) => {
  expect(topicToMove(parseFilter(query))).toBe(topic)
})

describe('the search box', () => {
  const id = '019a8c1e-7b2f-7c41-9a55-0c6e1c9f2a77'

  it.each([`  ${id}\n`, `"eventId":"${id.toUpperCase()}",`])('takes an id out of %s', (text) => {
    expect(readSearch(text)).toEqual({ kind: 'id', id })
  })

  it.each([
    ['type:order.placed topic:orders', 'type=order.placed&topic=orders'],
    ['order/42', 'aggregateType=order&aggregateId=42'],
    ['42', 'aggregateId=42'],
    ['status:dead', 'status=dead_letter'],
    [`aggregate:${id}`, `aggregateId=${id}`],
  ])('takes %s as a filter', (text, query) => {
    const search = readSearch(text)
    expect(search.kind === 'filter' && formatFilter(search.filter)).toBe(query)
  })
})

it('writes lengths of time in the units that a person would use', () => {
  const lengths = [0, 4.25, 850, 4_250, 38_900, 300_000, 7_500_000, 100_000_000]
  expect(lengths.map(format.duration)).toEqual([
    '0 ms',
    '4.3 ms',
    '850 ms',
    '4.2 s',
    '38 s',
    '5 min',
    '2 h 5 min',
    '1 d 3 h',
  ])
  expect(format.relative(NOW - 61_000, NOW)).toBe('1 min ago')
  expect(format.relative(NOW + 5_000, NOW)).toBe('in 5 s')
})

it('says at least where it did not count to the end', () => {
  expect(format.countOf({ count: 10_000, exact: false }, 'event', 'events')).toBe(
    'at least 10,000 events',
  )
  expect(format.countOf({ count: 1, exact: true }, 'event', 'events')).toBe('1 event')
})

it('does not say that there are none where it found none and stopped counting', () => {
  const counted = { count: 0, exact: false }
  expect(format.countOf(counted, 'event', 'events')).toBe('events, not counted to the end')
})

it('finds the view and the event of an address', () => {
  expect(parseRoute('#/events?type=a?b')).toEqual({ view: 'events', id: null, query: 'type=a?b' })
  expect(parseRoute('#/events/a%2Fb')).toMatchObject({ view: 'events', id: 'a/b' })
  expect(parseRoute('#/nowhere')).toMatchObject({ view: 'overview' })
})

it('finds the commands in a remedy', () => {
  const commands = (text: string) =>
    splitCommands(text).flatMap((piece) => (piece.isCommand ? [piece.text] : []))
  expect(commands('run aftercommit migrate (--sql prints what it would do)')).toEqual([
    'aftercommit migrate',
  ])
  expect(commands('end it, or with select pg_terminate_backend(42); or wait')).toEqual([
    'select pg_terminate_backend(42)',
  ])
  expect(commands('grant select, insert on "public"."outbox" to shop')).toEqual([
    'grant select, insert on "public"."outbox" to shop',
  ])
  expect(commands('run aftercommit purge --older-than 7d every day')).toEqual([
    'aftercommit purge --older-than 7d',
  ])
  expect(
    commands(
      "aftercommit reroute 'payment' <topic>, or aftercommit list --status pending --oldest",
    ),
  ).toEqual(["aftercommit reroute 'payment' <topic>", 'aftercommit list --status pending --oldest'])
  expect(commands('alter system set autovacuum = on, then select pg_reload_conf()')).toEqual([
    'alter system set autovacuum = on',
    'select pg_reload_conf()',
  ])
  expect(commands('look at the load of the server')).toEqual([])
})

describe('samples', () => {
  const sample = (at: number, pending = 0, stepMs = 5_000): Point => ({
    stepMs,
    at,
    pending,
    dead: 0,
    oldestMs: 0,
    immediate: null,
    fallback: null,
    failed: null,
    latency: null,
  })

  it('are kept for an hour, and each once', () => {
    const known = [sample(NOW - 3_600_001), sample(NOW - 5_000)]
    const kept = addSamples(known, [sample(NOW - 5_000), sample(NOW)], NOW)
    expect(kept.map(({ at }) => at)).toEqual([NOW - 5_000, NOW])
  })

  it('leave a gap where none was taken', () => {
    const taken = [sample(0, 1), sample(5_000, 2), sample(60_000, 3)]
    expect(columnsOf(taken, [({ pending }) => pending])).toEqual([
      [0, 5, 32.5, 60],
      [1, 2, null, 3],
    ])
  })

  it('of minutes are a line, beside those of seconds', () => {
    const taken = [sample(0, 1, 60_000), sample(60_000, 2, 60_000), sample(115_000, 3)]
    expect(columnsOf(taken, [({ pending }) => pending])[1]).toEqual([1, 2, 3])
  })

  it('of instances stand where the server of the page did not look', () => {
    const minutes = [1, 2, 3, 4].map((minute) => sample(minute * 60_000, 10 * minute))
    const seen = [sample(125_000), sample(130_000), sample(245_000)]
    const joined = joinHistory({ samples: minutes, stepMs: 60_000 }, seen)
    expect(joined.map(({ at, stepMs }) => [at, stepMs])).toEqual([
      [60_000, 60_000],
      [120_000, 60_000],
      [125_000, 5_000],
      [130_000, 5_000],
      [240_000, 60_000],
      [245_000, 5_000],
    ])
  })

  it('fill the plots from the start, however few there are', () => {
    const minutes = (ago: number) => spanOf([sample(NOW - ago * 60_000)], NOW) / 60_000
    expect([0.1, 2, 3, 14, 29, 31, 60].map(minutes)).toEqual([2, 2, 5, 15, 30, 60, 60])
    expect(spanOf([], NOW)).toBe(3_600_000)
  })

  it('have a trend over five minutes at most', () => {
    const taken = [sample(0, 900), sample(400_000, 5), sample(600_000, 25)]
    expect(trendOf(taken, ({ pending }) => pending)).toEqual({ by: 20, overMs: 200_000 })
    expect(trendOf(taken.slice(2), ({ pending }) => pending)).toBeNull()
  })
})

describe('the verdict', () => {
  const calm = {
    findings: [],
    pauses: [],
    instances: [{ isLost: false }],
    pending: { count: 0, exact: true },
    oldestMs: null,
  } as unknown as Overview
  const finding = (severity: string) => ({ severity }) as Overview['findings'][number]
  const pauses = [{ topic: 'orders' }] as unknown as Overview['pauses']

  it.each([
    ['loading', null, null],
    ['well', calm, null],
    ['idle', { ...calm, instances: [] }, null],
    ['attention', { ...calm, findings: [finding('warning')] }, null],
    ['paused', { ...calm, findings: [finding('warning')], pauses }, null],
    ['trouble', { ...calm, findings: [finding('error')], pauses }, null],
    ['unreachable', calm, new ApiError(0, 'unreachable', 'gone')],
  ] as const)('is %s', (state, overview, error) => {
    expect(judge(overview, error).state).toBe(state)
  })

  it('says who waits and who runs', () => {
    const busy = { ...calm, pending: { count: 2, exact: true }, oldestMs: 92 }
    expect(judge(busy, null).sentence).toBe(
      '2 events wait, the oldest for 92 ms, and 1 instance runs.',
    )
  })
})

describe('the history of an event', () => {
  const event = {
    status: 'pending',
    attempts: 0,
    maxAttempts: 10,
    error: null,
    occurredAt: '2026-11-18T11:59:00.000Z',
    createdAt: '2026-11-18T11:59:00.000Z',
    availableAt: '2026-11-18T11:59:10.000Z',
    behind: [],
    waitsFor: null,
  } as unknown as EventAnswer
  const names = (changed: Partial<EventAnswer>) =>
    stepsOf({ ...event, ...changed }, NOW).map(({ name }) => name)

  it.each([
    [{}, 'Next attempt'],
    [{ isLeased: true }, 'Being sent'],
    [{ isPaused: true }, 'Waits for a pause'],
    [{ waitsFor: 'topic', availableAt: '2026-11-18T11:59:57.000Z' }, 'Waits for its topic'],
    [{ waitsFor: 'broker', availableAt: '2026-11-18T11:59:57.000Z' }, 'Waits for its broker'],
    [{ waitsFor: 'topic', availableAt: '2026-11-18T12:00:10.000Z' }, 'Next attempt'],
    [{ behind: [{ id: 'x', status: 'failed', seq: 1 }] }, 'Waits for its turn'],
    [{ status: 'published', publishedAt: '2026-11-18T11:59:00.012Z' }, 'Published'],
    [{ status: 'dead_letter' }, 'Dead letter'],
  ] as const)('of %j ends with %s', (changed, last) => {
    expect(names(changed).at(-1)).toBe(last)
  })

  it('does not promise that a dead letter before it holds it back', () => {
    const detailOf = (...statuses: ('pending' | 'dead_letter')[]) => {
      const behind = statuses.map((status, seq) => ({ id: 'x', status, seq }))
      return stepsOf({ ...event, behind }, NOW).at(-1)!.detail
    }
    expect(detailOf('dead_letter')).toContain("only with onDeadLetter: 'hold'")
    expect(detailOf('dead_letter', 'pending')).toBe('An earlier event of its lane is not finished.')
  })

  it('has the last attempt and how many there were', () => {
    const failed = { status: 'failed', attempts: 3, error: 'refused' } as const
    expect(names(failed)).toEqual(['Emitted', 'Saved', 'Tried 3 times, last', 'Next attempt'])
  })
})

it('reads an address that was cut off, too', () => {
  expect(parseRoute('#/events/%E0%A4%A')).toMatchObject({ view: 'events', id: '%E0%A4%A' })
  expect(parseRoute('#/events/a%2Fb?type=x')).toEqual({
    view: 'events',
    id: 'a/b',
    query: 'type=x',
  })
})
