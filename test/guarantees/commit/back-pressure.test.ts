// maxBacklog: when the table holds too many unsent events, emit() says so instead of filling the disk.
import { afterEach, expect, it, vi } from 'vitest'
import type { OutboxError } from '../../../src/index.ts'
import { useFixture } from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

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

it('waits for its first count before it takes anything', async () => {
  const other = fixture.handling(handlers)
  await other.withOutbox(async (_, emit) => emit([newEvent(), newEvent(), newEvent()]))
  const outbox = fixture.handling(handlers, { maxBacklog: 3 })
  let begun = false
  const { saving } = await fixture.sql.begin(async (tx) => {
    await tx`lock table outbox`
    const work = outbox.withOutbox(async (_, emit) => {
      begun = true
      emit(newEvent())
    })
    const code = work.then(
      () => 'saved',
      (error) => (error as OutboxError).code,
    )
    await waitUntil(
      async () => {
        const rows = await tx`select 1 from pg_locks where relation = 'outbox'::regclass
          and not granted`
        return rows.length > 0
      },
      { message: 'the count, or the save, waits for the table' },
    )
    expect(begun).toBe(false)
    return { saving: code }
  })
  expect(await saving).toBe('BACKLOG_FULL')
})

it('has all the room again when what it saved itself has gone out', async () => {
  const outbox = fixture.handling(handlers, { maxBacklog: 3 })
  const saveThree = () =>
    outbox.withOutbox(async (_, emit) => emit([newEvent(), newEvent(), newEvent()]))
  for (let round = 0; round < 2; round += 1) {
    await waitUntil(() => saveThree().catch(() => null), { message: 'there is room for three' })
    expect(await outbox.pollOnce()).toBe(3)
  }
})

it('counts no further than it has to', async () => {
  const outbox = fixture.handling(handlers)
  await outbox.withOutbox(async (_, emit) => emit([newEvent(), newEvent(), newEvent()]))
  expect(await fixture.store().countPending(2)).toBe(2)
  expect(await fixture.store().countPending(4)).toBe(3)
})

it('says so when a unit of work emits more than ever fits, and names a mistake before that', async () => {
  const outbox = fixture.handling(handlers, { maxBacklog: 1 })
  const emitting = (events: object[]) =>
    outbox.withOutbox(async (_, emit) => emit(events as ReturnType<typeof newEvent>[]))
  await expect(emitting([newEvent(), newEvent()])).rejects.toThrow(/emit fewer in one unit of work/)
  await expect(emitting([{}, {}])).rejects.toMatchObject({ code: 'EVENT_INVALID' })
})

it('does not count what a savepoint took back', async () => {
  const outbox = fixture.handling(handlers, { maxBacklog: 2 })
  await outbox.withOutbox(async (tx, emit) => {
    const failing = tx.transaction(async () => {
      emit([newEvent(), newEvent()])
      throw new Error('not this way')
    })
    await failing.catch(() => {})
    emit([newEvent(), newEvent()])
  })
  expect(await fixture.rows()).toHaveLength(2)
})

it('has no limit by default', async () => {
  const outbox = fixture.handling(handlers)
  await outbox.withOutbox(async (_, emit) => {
    emit(Array.from({ length: 5_000 }, () => newEvent()))
  })
  expect(await fixture.rows()).toHaveLength(5_000)
})
