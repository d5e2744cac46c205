// A destination out of reach: nobody waits for it, and when it is back, nobody waits for the next poll.
import { expect, it, onTestFinished } from 'vitest'
import type { OutboxEvent, Publisher, PublishResult } from '../../../src/index.ts'
import { useFixture } from '../../support/fixture.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()

// A fake stands in for the broker: a circuit has to be met half-open with nothing to probe with, which a
// real broker cannot be timed to do.
function switchable() {
  const sent: string[] = []
  const state = { down: new Set<string>(), sent }
  const send = (event: OutboxEvent): PublishResult => {
    const { topic, aggregateId: key } = event
    if (state.down.has(topic)) {
      return { ok: false, kind: 'transient', error: new Error('down'), blames: 'topic' }
    }
    sent.push(event.id)
    return { ok: true, topic, key, partition: null, offset: null }
  }
  const publisher: Publisher = { name: 'switchable', publish: async (events) => events.map(send) }
  return { publisher, state }
}

const slowPoll = {
  poller: true,
  pollInterval: '1h',
  threshold: '1h',
  publishTimeout: '5s',
} as const

it('sends what was turned away while a probe was out as soon as the probe is back', async () => {
  const { publisher, state } = switchable()
  state.down.add('order')
  const outbox = fixture.outbox({ publisher, ...slowPoll })
  await outbox.start()
  const [failed, halfOpen] = [
    nextEvent(outbox.events, 'event:failed'),
    nextEvent(outbox.events, 'circuit:half-open'),
  ]
  // Nothing for the poller to probe with, from the record of the failure on: the next events meet the circuit half-open.
  await fixture.sql.unsafe(`
    create function rest_an_hour() returns trigger language plpgsql as $$ begin
      new.available_at := clock_timestamp() + interval '1 hour';
      return new;
    end $$;
    create trigger rest_an_hour before update on outbox for each row
      when (new.last_error is not null) execute function rest_an_hour()`)
  onTestFinished(async () => {
    await fixture.sql.unsafe('drop function rest_an_hour() cascade')
  })
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await Promise.all([failed, halfOpen])
  state.down.clear()
  await outbox.withOutbox(async (_, emit) => {
    emit(Array.from({ length: 5 }, () => newEvent()))
  })
  await waitUntil(() => state.sent.length === 5, { message: 'all five were sent without a poll' })
  expect((await fixture.rows()).every((row) => row.attempts === 0)).toBe(true)
})

it('does not let one topic in trouble stop the others, and costs its events no attempts', async () => {
  const { publisher, state } = switchable()
  state.down.add('away')
  const outbox = fixture.outbox({ publisher, ...slowPoll })
  const closed = nextEvent(outbox.events, 'circuit:closed')
  await outbox.start()
  for (let n = 0; n < 10; n += 1) {
    await outbox.withOutbox(async (_, emit) => {
      emit([newEvent({ topic: 'away' }), newEvent({ topic: 'there' })])
    })
  }
  await waitUntil(() => state.sent.length === 10, { message: 'the other topic goes on' })
  state.down.clear()
  expect(await closed).toEqual({ publisher: 'switchable', topic: 'away' })
  await waitUntil(
    async () => (await fixture.rows()).every(({ status }) => status === 'published'),
    {
      message: 'the backlog drained when the topic was back',
    },
  )
  expect((await fixture.rows()).every((row) => row.attempts === 0)).toBe(true)
  expect(new Set(state.sent).size).toBe(20)
})
