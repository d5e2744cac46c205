// A topic whose sends hang delays no other topic of the same publisher, where its order is by topic: on the immediate path,
// from the fallback, and once the sends are given up. A fake stands in for the broker: a real one that lets a single topic
// hang is in slow-replicas.test.ts, and takes half a minute to show it.
import { afterEach, expect, it } from 'vitest'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { useFixture } from '../../support/fixture.ts'
import { type Deferred, defer } from '../../support/timing/deferred.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
let released: Deferred<void>
afterEach(() => released.resolve())

/** An outbox whose publisher hangs for the topic `stuck`, and the topics of its sends so far. */
function setUp(options: object = {}) {
  released = defer()
  const sent: string[] = []
  const publisher = scriptedPublisher(
    async (event) => {
      sent.push(event.topic)
      if (event.topic === 'stuck') await released.promise
      return acked(event)
    },
    { orderScope: 'topic', settlesWithinMs: 60_000 },
  )
  const outbox = fixture.outbox({ publisher, ...options })
  const commit = (topic: string, aggregateId: string) =>
    outbox.withOutbox((_, emit) => emit(newEvent({ topic, aggregateId })))
  const countSent = (topic: string) => sent.filter((one) => one === topic).length
  return { outbox, commit, countSent }
}

it('holds up no other topic on the immediate path, nor the next event of its aggregates', async () => {
  const { outbox, commit, countSent } = setUp()
  await outbox.start()
  // More than the batches that may be under way at once, and one unit of work with events for both.
  for (let n = 0; n < 6; n += 1) await commit('stuck', `stuck-${n}`)
  await waitUntil(() => countSent('stuck') > 0, { message: 'the first send hangs' })
  await outbox.withOutbox((_, emit) => {
    emit(newEvent({ topic: 'stuck', aggregateId: 'both' }))
    emit(newEvent({ topic: 'fine', aggregateId: 'both' }))
  })
  await waitUntil(() => countSent('fine') === 1, { message: 'the other topic is sent' })
  const published = nextEvent(outbox.events, 'event:published', () => countSent('fine') === 2)
  await commit('fine', 'both')
  expect(await published).toMatchObject({ topic: 'fine', path: 'immediate' })
  expect(countSent('stuck')).toBeLessThan(7)
})

it('holds up no other topic of the fallback', async () => {
  const { outbox, commit, countSent } = setUp({
    immediate: false,
    // Longer than the test waits: what hangs is not given up meanwhile.
    publishTimeout: '1m',
    poller: true,
    pollInterval: '200ms',
  })
  await commit('stuck', 'one')
  await outbox.start()
  await waitUntil(() => countSent('stuck') > 0, { message: 'the fallback sends what hangs' })
  // Listened for before the commit, as the poller may be quicker than this test.
  const published = nextEvent(outbox.events, 'event:published')
  await commit('fine', 'two')
  expect(await published).toMatchObject({ topic: 'fine', path: 'fallback' })
  expect((await outbox.stats()).pending.count).toBe(1)
})

it('opens the circuit of that topic alone when its sends are given up', async () => {
  const { outbox, commit } = setUp({ publishTimeout: '2s' })
  await outbox.start()
  const opened = nextEvent(outbox.events, 'circuit:open')
  await commit('stuck', 'one')
  const traffic = { goesOn: true }
  const sending = (async () => {
    for (let n = 0; traffic.goesOn; n += 1) {
      const done = nextEvent(outbox.events, 'event:published')
      await commit('fine', `fine-${n}`)
      await done
    }
  })()
  expect(await opened).toMatchObject({ topic: 'stuck', error: { code: 'PUBLISH_TIMEOUT' } })
  traffic.goesOn = false
  await sending
})
