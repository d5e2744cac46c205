// With order by aggregate the events of a lane are handled one at a time, and none after a later one.
import { sql as raw } from 'drizzle-orm'
import { expect, it } from 'vitest'
import { laneByEvent } from '../../../src/event/lane.ts'
import { defer } from '../../support/timing/deferred.ts'
import { useFixture } from '../../support/fixture.ts'
import { addEffect, useInbox, waitForSessions } from '../../support/inbox.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'

const fixture = useFixture()
const { inbox: create, effects, remembered } = useInbox(fixture)

const ordered = (options: Parameters<typeof create>[0] = {}) =>
  create({ order: 'aggregate', ...options })
const message = (aggregateId: string, seq: number) => ({
  id: `${aggregateId}${seq}`,
  aggregateType: 'order',
  aggregateId,
  seq,
})

it('does not handle an event after a later one of its aggregate, and says so', async () => {
  const logger = recordingLogger()
  const inbox = ordered({ logger })
  await inbox.once(message('a', 2), (tx) => addEffect(tx, 'a2'))
  const late = await inbox.once(message('a', 1), () => expect.fail('called'))
  expect(late).toEqual({ outcome: 'late' })
  expect(await remembered()).toEqual(['billing/a2'])
  expect(logger.lines).toMatchObject([
    { level: 'warn', fields: { consumer: 'billing', event: { id: 'a1', seq: 1 } } },
  ])
  // It stays late until somebody decides otherwise: the same consumer without order handles it.
  expect(await inbox.once(message('a', 1), () => {})).toEqual({ outcome: 'late' })
  const decided = await create({ order: 'none' }).once(message('a', 1), (tx) => addEffect(tx, 'a1'))
  expect(decided).toMatchObject({ outcome: 'handled' })
  expect(await inbox.once(message('a', 1), () => {})).toEqual({ outcome: 'duplicate' })
})

it('calls an event that was handled before a duplicate, not late', async () => {
  const inbox = ordered()
  for (const seq of [1, 2, 3]) await inbox.once(message('a', seq), () => {})
  for (const seq of [1, 2, 3]) {
    expect(await inbox.once(message('a', seq), () => {})).toEqual({ outcome: 'duplicate' })
  }
})

it('goes by aggregate and by consumer', async () => {
  const handled = { outcome: 'handled', result: undefined }
  await ordered().once(message('a', 9), () => {})
  expect(await ordered().once(message('b', 1), () => {})).toEqual(handled)
  const other = { ...message('a', 1), aggregateType: 'invoice' }
  expect(await ordered().once(other, () => {})).toEqual(handled)
  const mail = ordered({ consumer: 'mail' })
  expect(await mail.once(message('a', 1), () => {})).toEqual(handled)
})

it('keeps the order of each lane of an aggregate, and none between them', async () => {
  const inbox = ordered()
  const deliver = async (seq: number, lane: number) =>
    (await inbox.once({ ...message('a', seq), lane }, () => {})).outcome
  expect(await deliver(9, 1)).toBe('handled')
  expect(await deliver(5, 2)).toBe('handled')
  expect(await deliver(8, 1)).toBe('late')
  expect(await deliver(4, 2)).toBe('late')
  expect(await deliver(10, 1)).toBe('handled')
  expect(await deliver(5, 2)).toBe('duplicate')
})

it('does not take two aggregates for one because their lanes have the same number', async () => {
  const inbox = ordered()
  await inbox.once({ ...message('a', 9), lane: 7 }, () => {})
  const handled = { outcome: 'handled', result: undefined }
  expect(await inbox.once({ ...message('b', 1), lane: 7 }, () => {})).toEqual(handled)
  const other = { ...message('a', 1), aggregateType: 'invoice', lane: 7 }
  expect(await inbox.once(other, () => {})).toEqual(handled)
})

it('keeps events with a lane and events without one in two orders', async () => {
  const inbox = ordered()
  const deliver = async (seq: number, lane: object) =>
    (await inbox.once({ ...message('a', seq), ...lane }, () => {})).outcome
  expect(await deliver(9, { lane: 1 })).toBe('handled')
  expect(await deliver(5, {})).toBe('handled')
  expect(await deliver(4, {})).toBe('late')
  expect(await deliver(8, { lane: 1 })).toBe('late')
  expect(await deliver(10, {})).toBe('handled')
  expect(await deliver(11, { lane: 1 })).toBe('handled')
})

it('keeps the order of the aggregate where the outbox gave each event a lane of its own', async () => {
  const inbox = ordered()
  const alone = (seq: number) => ({ ...message('a', seq), lane: laneByEvent(message('a', seq)) })
  expect(await inbox.once(alone(2), () => {})).toMatchObject({ outcome: 'handled' })
  expect(await inbox.once(alone(1), () => {})).toEqual({ outcome: 'late' })
  expect(await inbox.once(alone(3), () => {})).toMatchObject({ outcome: 'handled' })
})

it('takes sequences for numbers, gaps and all', async () => {
  const inbox = ordered()
  await inbox.once(message('a', 9), () => {})
  expect(await inbox.once(message('a', 10), () => {})).toMatchObject({ outcome: 'handled' })
  const large = Number.MAX_SAFE_INTEGER
  expect(await inbox.once(message('a', large), () => {})).toMatchObject({ outcome: 'handled' })
  expect(await inbox.once(message('a', large - 1), () => {})).toEqual({ outcome: 'late' })
})

it('handles two events of an aggregate one after the other, and those of others meanwhile', async () => {
  const inbox = ordered()
  const [begun, finish] = [defer(), defer()]
  const later = inbox.once(message('a', 2), async (tx) => {
    await addEffect(tx, 'a2')
    begun.resolve()
    await finish.promise
  })
  await begun.promise
  const earlier = inbox.once(message('a', 1), () => expect.fail('called meanwhile'))
  const next = inbox.once(message('a', 3), (tx) => addEffect(tx, 'a3'))
  const others = async () => {
    await waitForSessions(fixture.sql, 2)
    await inbox.once(message('b', 1), (tx) => addEffect(tx, 'b1'))
  }
  await others().finally(finish.resolve)
  await later
  expect(await earlier).toEqual({ outcome: 'late' })
  expect(await next).toMatchObject({ outcome: 'handled' })
  expect(await effects()).toEqual(['a2', 'b1', 'a3'])
})

it('handles events of two lanes of an aggregate at the same time', async () => {
  const inbox = ordered()
  const [begun, finish] = [defer(), defer()]
  const done: string[] = []
  const first = inbox.once({ ...message('a', 2), lane: 1 }, async () => {
    begun.resolve()
    await finish.promise
    done.push('first')
  })
  await begun.promise
  // Without this the test would hang where the other lane waits.
  const giveUp = setTimeout(finish.resolve, 20_000)
  const next = inbox.once({ ...message('a', 3), lane: 1 }, () => void done.push('next'))
  await waitForSessions(fixture.sql, 1)
  await inbox.once({ ...message('a', 1), lane: 2 }, () => void done.push('beside'))
  clearTimeout(giveUp)
  finish.resolve()
  await Promise.all([first, next])
  expect(done).toEqual(['beside', 'first', 'next'])
})

it('lets an event through that waited for a later one which was not handled after all', async () => {
  const inbox = ordered()
  const [begun, finish] = [defer(), defer()]
  const later = inbox.once(message('a', 2), async () => {
    begun.resolve()
    await finish.promise
    throw new Error('no')
  })
  await begun.promise
  const earlier = inbox.once(message('a', 1), (tx) => addEffect(tx, 'a1'))
  await waitForSessions(fixture.sql, 1).finally(finish.resolve)
  await expect(later).rejects.toThrow('no')
  expect(await earlier).toMatchObject({ outcome: 'handled' })
})

it.each([
  ['no sequence', { id: 'e1', aggregateType: 'order', aggregateId: 'a' }],
  ['no aggregate', { id: 'e1', seq: 1 }],
  ['a sequence that is no number', { ...message('a', 1), seq: 'first' }],
  ['an aggregate that cannot be stored', { ...message('a', 1), aggregateId: 'a\u0000' }],
])('refuses a message with %s, which has no place in an order', async (_, odd) => {
  const refused = ordered().once(odd, () => expect.fail('called'))
  await expect(refused).rejects.toMatchObject({ code: 'MESSAGE_UNREADABLE' })
  await expect(refused).rejects.toThrow(/order: 'aggregate' needs/)
  expect(await create().once(odd, () => {})).toMatchObject({ outcome: 'handled' })
})

it('refuses an open transaction whose snapshot may be older than its turn', async () => {
  const strict = fixture.db.transaction(
    async (tx) => ordered().onceIn(tx, message('a', 1), () => expect.fail('called')),
    { isolationLevel: 'serializable' },
  )
  await expect(strict).rejects.toMatchObject({ code: 'OPTIONS_INVALID' })
  await expect(strict).rejects.toThrow(/serializable.*read committed/)
})

it('does not deadlock when a batch of an aggregate meets a single one of its events', async () => {
  const inbox = ordered()
  const [begun, go] = [defer(), defer()]
  const batch = fixture.db.transaction(async (tx) => {
    await inbox.onceIn(tx, message('a', 1), (inner) => addEffect(inner, 'a1'))
    begun.resolve()
    await go.promise
    return await inbox.onceIn(tx, message('a', 2), (inner) => addEffect(inner, 'a2'))
  })
  await begun.promise
  // Were the row inserted before the lock is asked for, the batch would wait for it, and it for the batch.
  // (In a transaction of its own, once() would hide that, as it tries again.)
  const single = fixture.db.transaction((tx) =>
    inbox.onceIn(tx, message('a', 2), (inner) => addEffect(inner, 'a2')),
  )
  await waitForSessions(fixture.sql, 1).finally(go.resolve)
  expect(await batch).toMatchObject({ outcome: 'handled' })
  expect(await single).toEqual({ outcome: 'duplicate' })
  expect(await effects()).toEqual(['a1', 'a2'])
})

it('does not deadlock when two aggregates are delivered by many at once, each event three times', async () => {
  const inbox = ordered()
  const outcomes: string[] = []
  const seqs = Array.from({ length: 40 }, (_, n) => n + 1)
  // One starts with the one aggregate, the next with the other; the effects of both lock one row.
  await fixture.sql`create table totals (n int)`
  await fixture.sql`insert into totals values (0)`
  const deliverAll = async (aggregates: string[]) => {
    for (const seq of seqs) {
      for (const aggregate of aggregates) {
        const { outcome } = await inbox.once(message(aggregate, seq), async (tx, { id }) => {
          await tx.execute(raw`update totals set n = n + 1`)
          await addEffect(tx, id)
        })
        outcomes.push(outcome)
      }
    }
  }
  await Promise.all([deliverAll(['a', 'b']), deliverAll(['b', 'a']), deliverAll(['a', 'b'])])
  expect(outcomes.filter((outcome) => outcome === 'handled')).toHaveLength(80)
  expect(outcomes).not.toContain('late')
  const order = await effects()
  for (const aggregate of ['a', 'b']) {
    const own = order.filter((id) => id.startsWith(aggregate))
    expect(own).toEqual(seqs.map((seq) => `${aggregate}${seq}`))
  }
  expect(await fixture.sql`select n from totals`).toEqual([{ n: 80 }])
})
