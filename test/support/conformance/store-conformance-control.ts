// What every store has to do for operators: pauses, and the rows of the instances that run.
import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import type {
  InstanceHistory,
  InstanceReport,
  OwnInstance,
} from '../../../src/store/outbox/control-store.ts'
import { waitUntil } from '../timing/wait-until.ts'
import type { TestedStore } from './store-under-test.ts'

const NOBODY = { by: null, reason: null }

const REPORT: InstanceReport = {
  inFlight: 2,
  circuits: [{ publisher: 'kafka', topic: 'a', forMs: 1_500, error: 'the "topic" is away' }],
  published: { immediate: 3, fallback: 1 },
  failed: 1,
  dead: 0,
  duplicates: 0,
  latency: [1, 2],
}

const NOTHING_YET: InstanceHistory = { topics: [], lastBeganMsAgo: 0, minutes: [0] }

const instance = (given: Partial<OwnInstance> = {}): OwnInstance => ({
  id: randomUUID(),
  workerId: 'worker "1"',
  host: 'host',
  pid: 4711,
  version: '1.2.3',
  upMs: 0,
  publishers: [
    { name: 'kafka', topics: ['a', 'b "quoted"'] },
    { name: 'rabbit', topics: null },
  ],
  immediate: true,
  poller: false,
  settings: { order: 'aggregate', retention: 0, deadLetterTopic: null, lockKeys: false },
  report: REPORT,
  ...given,
})

export function describeControl<TTx>({ store }: TestedStore<TTx>): void {
  it('pauses a topic once, says who did and why, and resumes it once', async () => {
    const { control } = store()
    const about = { by: 'Ada "on call"', reason: "it's broken" }
    expect(await control.pauses()).toEqual([])
    expect(await control.pause('orders', about)).toBe(true)
    expect(await control.pause('orders', { by: 'Bob', reason: null })).toBe(false)
    const [pause] = await control.pauses()
    expect(pause).toEqual({ topic: 'orders', since: expect.any(Date) as Date, ...about })
    expect(Math.abs(Date.now() - pause!.since.getTime())).toBeLessThan(60_000)
    expect(await control.resume('orders')).toBe(true)
    expect(await control.resume('orders')).toBe(false)
    expect(await control.pauses()).toEqual([])
  })

  it('pauses everything apart from the topics that are paused by name', async () => {
    const { control } = store()
    await control.pause(null, NOBODY)
    await control.pause('null', NOBODY)
    const topics = async () => (await control.pauses()).map(({ topic }) => topic)
    expect(await topics()).toEqual([null, 'null'])
    expect(await control.resume(null)).toBe(true)
    expect(await topics()).toEqual(['null'])
  })

  it('returns the pauses with each beat, and keeps a row for each instance until it leaves', async () => {
    const { control } = store()
    const [one, other] = [instance({ upMs: 5_000 }), instance({ poller: true, immediate: false })]
    await control.pause('orders', NOBODY)
    expect(await control.beat(one, null)).toMatchObject([{ topic: 'orders', by: null }])
    await control.beat(other, null)
    const [first, second] = await control.instances()
    const { upMs: _, ...described } = one
    expect(first).toMatchObject(described)
    expect(second).toMatchObject({ id: other.id, immediate: false, poller: true })
    expect(first!.seenAt.getTime() - first!.startedAt.getTime()).toBeGreaterThanOrEqual(4_999)
    expect(first!.seenMsAgo).toBeLessThan(60_000)
    await control.leave(one.id, NOTHING_YET)
    expect((await control.instances()).map(({ id }) => id)).toEqual([other.id])
  })

  it('renews the row with a beat, and leaves its start as it was', async () => {
    const { control } = store()
    const self = instance()
    await control.beat(self, null)
    const [before] = await control.instances()
    const renewed = await waitUntil(
      async () => {
        await control.beat({ ...self, upMs: 10_000 }, null)
        const [row] = await control.instances()
        return row!.seenAt > before!.seenAt && row
      },
      { message: 'the row is renewed' },
    )
    expect(renewed.startedAt).toEqual(before!.startedAt)
    expect(await control.instances()).toHaveLength(1)
  })

  it('keeps what an instance did, through beats that add nothing and after it has left', async () => {
    const { control } = store()
    const self = instance()
    const history: InstanceHistory = {
      topics: ['the "orders"'],
      lastBeganMsAgo: 61_000,
      minutes: [0, { sent: [[0, 5, 1, 2]], took: [3, 5], table: [4, 900, 1] }],
    }
    await control.beat(self, null)
    expect(await control.histories()).toEqual([])
    await control.beat(self, history)
    const [written] = await control.histories()
    expect(written).toMatchObject({ id: self.id, workerId: self.workerId, history })
    expect(written!.seenMsAgo).toBeLessThan(60_000)
    await control.beat(self, null)
    expect(await control.histories()).toMatchObject([{ history, writtenAt: written!.writtenAt }])
    const atEnd = { ...history, lastBeganMsAgo: 7_000 }
    await control.leave(self.id, atEnd)
    expect(await control.histories()).toMatchObject([{ seenMsAgo: null, history: atEnd }])
  })

  it('does not list an instance that has left, even if a beat of it comes late', async () => {
    const { control } = store()
    const self = instance()
    await control.beat(self, null)
    await control.leave(self.id, NOTHING_YET)
    await control.pause('orders', NOBODY)
    expect(await control.beat(self, NOTHING_YET)).toMatchObject([{ topic: 'orders' }])
    expect(await control.instances()).toEqual([])
  })
}
