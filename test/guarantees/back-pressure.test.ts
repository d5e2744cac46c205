// maxBacklog: when the table holds too many unsent events, emit() says so instead of filling the disk.
import { afterEach, expect, it, vi } from 'vitest'
import { useFixture } from '../support/fixture.ts'
import { newEvent } from '../support/sample-events.ts'
import { nextEvent, waitUntil } from '../support/wait-until.ts'

const fixture = useFixture()
const handlers = { OrderCompleted: () => {} }
afterEach(() => {
  vi.restoreAllMocks()
})

it('refuses an event that would exceed maxBacklog, and nothing of its unit of work is saved', async () => {
  const outbox = fixture.handling(handlers, { maxBacklog: 3 })
  const save = (count: number) =>
    outbox.withOutbox(async (_, emit) => {
      emit(Array.from({ length: count }, () => newEvent()))
    })
  await save(2)
  await expect(save(2)).rejects.toMatchObject({ code: 'BACKLOG_FULL' })
  await expect(save(2)).rejects.toThrow(/2 events wait .* 2 more .* maxBacklog \(3\); .* raise/)
  await save(1)
  await expect(save(1)).rejects.toMatchObject({ code: 'BACKLOG_FULL' })
  expect(await fixture.rows()).toHaveLength(3)
})

it('counts what one unit of work emits bit by bit, and dooms it even if the refusal is caught', async () => {
  const outbox = fixture.handling(handlers, { maxBacklog: 2 })
  const work = outbox.withOutbox(async (_, emit) => {
    for (let n = 0; n < 3; n += 1) {
      try {
        emit(newEvent())
      } catch {}
    }
  })
  await expect(work).rejects.toMatchObject({ code: 'BACKLOG_FULL' })
  expect(await fixture.rows()).toEqual([])
})

it('sees what other processes left behind, and takes events again once there is room', async () => {
  const other = fixture.handling(handlers)
  await other.withOutbox(async (_, emit) => emit([newEvent(), newEvent(), newEvent()]))
  const outbox = fixture.handling(handlers, { maxBacklog: 3 })
  const saveOne = () => outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await expect(saveOne()).rejects.toMatchObject({ code: 'BACKLOG_FULL' })
  expect(await other.pollOnce()).toBe(3)
  const saved = await waitUntil(() => saveOne().catch(() => null), { message: 'there is room' })
  expect((await fixture.rows()).at(-1)).toMatchObject({ id: saved, status: 'pending' })
})

it('does not count what has been sent since the last look', async () => {
  const outbox = fixture.handling(handlers, { maxBacklog: 5 })
  await outbox.start()
  for (let n = 0; n < 50; n += 1) {
    const published = nextEvent(outbox.events, 'event:published')
    await outbox.withOutbox(async (_, emit) => emit(newEvent()))
    await published
  }
  expect(await fixture.rows()).toHaveLength(50)
})

it('looks again before it refuses, however long ago it looked', async () => {
  let later = 0
  const now = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => now() + later)
  const outbox = fixture.handling(handlers, { maxBacklog: 1 })
  const saveOne = () => outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await saveOne()
  await expect(saveOne()).rejects.toMatchObject({ code: 'BACKLOG_FULL' })
  await fixture.sql`truncate outbox`
  later = 100
  await saveOne()
  expect(await fixture.rows()).toHaveLength(1)
})

it('has no limit by default', async () => {
  const outbox = fixture.handling(handlers)
  await outbox.withOutbox(async (_, emit) => {
    emit(Array.from({ length: 5_000 }, () => newEvent()))
  })
  expect(await fixture.rows()).toHaveLength(5_000)
})
