// A backlog drains at full speed: while one batch is on its way the next is claimed, by the rules that keep two
// instances apart.
import { expect, it } from 'vitest'
import { defer } from '../../support/timing/deferred.ts'
import { useFixture } from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
const POLLING = { poller: true, immediate: false, batchSize: 2 } as const

async function saveBacklog(aggregates: readonly string[]) {
  await fixture.handling({}).withOutbox((_, emit) => {
    return emit(aggregates.map((aggregateId, payload) => newEvent({ aggregateId, payload })))
  })
}

const allWentOut = () =>
  waitUntil(async () => (await fixture.rows()).every(({ status }) => status === 'published'), {
    message: 'all went out',
  })

/** The claim of that number fails, and no other. A sequence counts on where a transaction rolls back. */
async function failClaim(number: number) {
  await fixture.sql.unsafe(`
    drop trigger if exists count_claims on outbox;
    drop sequence if exists claims;
    create sequence claims;
    create or replace function count_claims() returns trigger language plpgsql as $$ begin
      if current_query() like '%aftercommit: claim events%' and nextval('claims') = ${number}
      then raise 'the test says no'; end if;
      return null;
    end $$;
    create trigger count_claims before update on outbox execute function count_claims()`)
}

it('claims the next batch while one is on its way, once there is a backlog', async () => {
  await saveBacklog(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'])
  const answers = defer()
  const publisher = scriptedPublisher(async (event) => {
    if (event.payload > '1') await answers.promise
    return acked(event)
  })
  const outbox = fixture.outbox({ publisher, ...POLLING })
  await outbox.start()
  await waitUntil(() => publisher.batches.length === 4, {
    message: 'three batches are on their way',
  })
  answers.resolve()
  await allWentOut()
  // Claims that run at the same time share out the rows as they find them.
  expect(publisher.batches.map(({ length }) => length)).toEqual([2, 2, 2, 2])
  expect(new Set(publisher.batches.flat())).toEqual(new Set([0, 1, 2, 3, 4, 5, 6, 7]))
})

async function batchesOf(events: number, payloadCharacters: number) {
  const payload = 'x'.repeat(payloadCharacters)
  const backlog = Array.from({ length: events }, (_, n) => {
    return newEvent({ aggregateId: `order-${n}`, payload })
  })
  await fixture.handling({}).withOutbox((_, emit) => emit(backlog))
  const publisher = scriptedPublisher(acked, { batchSize: 1_000 })
  const outbox = fixture.outbox({ publisher, poller: true, immediate: false })
  await outbox.start()
  await allWentOut()
  return publisher.batches.map(({ length }) => length)
}

it('takes more with each claim while there is a backlog, for a publisher that likes it', async () => {
  const sizes = await batchesOf(4_000, 10)
  expect(sizes[0]).toBe(250)
  expect(Math.max(...sizes)).toBe(1_000)
  expect(sizes.reduce((sum, size) => sum + size)).toBe(4_000)
})

it('takes fewer when payloads turn out to be large', async () => {
  // With its quotes each has 50,000 characters, and 80 of them are as much as a batch may weigh.
  const sizes = await batchesOf(650, 49_998)
  expect(sizes[0]).toBe(250)
  expect(Math.max(...sizes.slice(1))).toBe(80)
})

it('takes fewer when a claim took so long that nothing of it may be sent', async () => {
  await saveBacklog(Array.from({ length: 40 }, (_, n) => `order-${n}`))
  await fixture.sql.unsafe(`
    create function delay_claims() returns trigger language plpgsql as $$ begin
      if current_query() like '%aftercommit: claim events%' and (select count(*) from claimed) > 20
      then perform pg_sleep(2.2); end if;
      return null;
    end $$;
    create trigger delay_claims after update on outbox referencing new table as claimed
      for each statement execute function delay_claims()`)
  const publisher = scriptedPublisher(acked)
  const outbox = fixture.outbox({ publisher, threshold: '4s', publishTimeout: '1s', batchSize: 40 })
  expect(await outbox.pollOnce()).toBe(40)
  expect(publisher.batches).toEqual([])
  expect(await outbox.pollOnce()).toBe(20)
  expect(publisher.batches.flat()).toHaveLength(20)
  await fixture.sql`drop trigger delay_claims on outbox`
})

it('takes fewer after a claim that failed', async () => {
  await saveBacklog(['a', 'b', 'c', 'd'])
  await failClaim(1)
  const outbox = fixture.outbox({ publisher: scriptedPublisher(acked), batchSize: 4 })
  await expect(outbox.pollOnce()).rejects.toMatchObject({ code: 'STORE_FAILED' })
  expect(await outbox.pollOnce()).toBe(2)
})

it('begins anew when a backlog is over', async () => {
  const aggregates = Array.from({ length: 300 }, (_, n) => `order-${n}`)
  const publisher = scriptedPublisher(acked, { batchSize: 1_000 })
  const outbox = fixture.outbox({ publisher })
  await saveBacklog(aggregates.slice(0, 250))
  for (const claimed of [250, 0]) expect(await outbox.pollOnce()).toBe(claimed)
  await saveBacklog(aggregates)
  expect(await outbox.pollOnce()).toBe(250)
})

it('keeps the order of an aggregate whose next event it has on its way', async () => {
  await saveBacklog(['one', 'one', 'one', 'one', 'one', 'one', 'two', 'two', 'two', 'two'])
  const publisher = scriptedPublisher(acked)
  const outbox = fixture.outbox({ publisher, ...POLLING })
  await outbox.start()
  await allWentOut()
  const sent = publisher.batches.flat() as number[]
  expect(sent.filter((n) => n < 6)).toEqual([0, 1, 2, 3, 4, 5])
  expect(sent.filter((n) => n >= 6)).toEqual([6, 7, 8, 9])
})

it('stops in the middle of a backlog, with what it had begun recorded', async () => {
  await saveBacklog(Array.from({ length: 40 }, (_, n) => `order-${n}`))
  const begun = defer()
  const publisher = scriptedPublisher((event) => {
    if (event.payload === '9') begun.resolve()
    return acked(event)
  })
  const outbox = fixture.outbox({ publisher, ...POLLING })
  await outbox.start()
  await begun.promise
  await outbox.stop()
  const published = (await fixture.rows()).filter(({ status }) => status === 'published')
  expect(published).toHaveLength(publisher.batches.flat().length)
  expect(published.length).toBeLessThan(40)
})

it('tells of a round that failed while the backlog is there, and delivers all of it', async () => {
  await saveBacklog(Array.from({ length: 40 }, (_, n) => `order-${n}`))
  await failClaim(3)
  const publisher = scriptedPublisher(acked)
  const outbox = fixture.outbox({ publisher, ...POLLING })
  const told = nextEvent(outbox.events, 'error', ({ step }) => step === 'poll')
  const sentWhenTold = told.then(() => publisher.batches.flat().length)
  await outbox.start()
  expect(await sentWhenTold).toBeLessThan(40)
  await allWentOut()
  expect(publisher.batches.flat()).toHaveLength(40)
})
