import { describe, expect, it } from 'vitest'
import type { BrowseStore, EventSummary } from '../../../src/store/outbox/browse-store.ts'
import { EventTail } from '../../../src/upkeep/tail.ts'

/** A table of ids and statuses. The id is the time in ms, and a number to tell apart what is of one time. */
function table() {
  const rows = new Map<string, string>()
  const listed: number[] = []
  const browse: BrowseStore = {
    async list({ savedSince = new Date(0) }, { limit, after, order }) {
      const since = idAt(savedSince.getTime())
      const ids = [...rows.keys()].filter((id) => id >= since && (after === null || id > after))
      ids.sort()
      if (order === 'newest') ids.reverse()
      const events = ids.slice(0, limit).map((id) => ({ id, status: rows.get(id) }) as EventSummary)
      if (order === 'oldest') listed.push(events.length)
      return { events, next: ids.length > limit ? events.at(-1)!.id : null }
    },
    show: async () => null,
  }
  return { rows, browse, listed }
}

function idAt(ms: number, n = 0): string {
  const time = ms.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${String(n).padStart(12, '0')}`
}

const now = Date.now()

describe('a tail', () => {
  it('returns each event once, and again when its status has changed', async () => {
    const { rows, browse } = table()
    rows.set(idAt(now - 5_000), 'pending')
    const tail = new EventTail(browse, {})
    expect(await tail.next()).toEqual([])
    rows.set(idAt(now), 'pending')
    expect(await tail.next()).toEqual([{ id: idAt(now), status: 'pending' }])
    expect(await tail.next()).toEqual([])
    rows.set(idAt(now - 5_000), 'published')
    expect(await tail.next()).toEqual([{ id: idAt(now - 5_000), status: 'published' }])
    expect(await tail.next()).toEqual([])
  })

  it('returns what is committed seconds after what was emitted later', async () => {
    const { rows, browse } = table()
    const tail = new EventTail(browse, {})
    await tail.begin()
    rows.set(idAt(now), 'pending')
    await tail.next()
    rows.set(idAt(now - 9_000), 'pending')
    expect(await tail.next()).toEqual([{ id: idAt(now - 9_000), status: 'pending' }])
  })

  it('sees the events of others beside one of an application whose clock is ahead', async () => {
    const { rows, browse } = table()
    rows.set(idAt(now + 3_600_000), 'pending')
    const tail = new EventTail(browse, {})
    await tail.begin()
    rows.set(idAt(now), 'pending')
    expect(await tail.next()).toEqual([{ id: idAt(now), status: 'pending' }])
  })

  it('reads only the last seconds of a long history', async () => {
    const { rows, browse, listed } = table()
    for (let n = 0; n < 5_000; n += 1) rows.set(idAt(now - 60_000, n), 'published')
    rows.set(idAt(now), 'pending')
    const tail = new EventTail(browse, {})
    await tail.next()
    await tail.next()
    expect(listed).toEqual([1, 1, 1])
  })

  it('reads no more than 20,000 events at once, and goes on from there', async () => {
    const { rows, browse, listed } = table()
    const tail = new EventTail(browse, {})
    await tail.begin()
    for (let n = 0; n < 30_000; n += 1)
      rows.set(idAt(now - 4_000 + Math.floor(n / 10), n), 'pending')
    listed.length = 0
    const first = await tail.next()
    expect(first).toHaveLength(20_000)
    expect(listed).toHaveLength(20)
    const second = await tail.next()
    expect(new Set([...first, ...second].map(({ id }) => id)).size).toBe(30_000)
    expect(second).toHaveLength(10_000)
    expect(await tail.next()).toEqual([])
  })
})
