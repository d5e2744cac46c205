// A transaction with emitIn() that stays open for a minute, many times the threshold: nothing of it is published before its
// COMMIT, and all of it soon after, without a poller.
import { expect, it } from 'vitest'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { SERVED_DRIVERS } from '../../support/drivers.ts'
import { describeEach, WATCHABLE } from '../../support/fixture.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

/** Together they take a minute; one after the other would take four. */
const [first, ...others] = SERVED_DRIVERS

describeEach([first!], (fixture) => {
  it('publishes once it commits, and not if it rolls back', { timeout: 150_000 }, async () => {
    await Promise.all([first!, ...others].map((driver) => stayOpen(driver)))
  })

  async function stayOpen({ open, begin, query }: (typeof SERVED_DRIVERS)[number]): Promise<void> {
    const { db, close } = open(fixture.url)
    const published: string[] = []
    const publisher = scriptedPublisher((event) => {
      published.push(event.id)
      return acked(event)
    })
    const outbox = fixture.outbox({ db, publisher, ...WATCHABLE })
    await outbox.start()
    const committed = begin(db, async (tx) => {
      const id = await outbox.emitIn(tx, newEvent())
      await query(tx, 'select pg_sleep(60)')
      expect(published).toEqual([])
      return id
    })
    const rolledBack = begin(db, async (tx) => {
      await outbox.emitIn(tx, newEvent())
      await query(tx, 'select pg_sleep(60)')
      throw new Error('no')
    })
    await expect(rolledBack).rejects.toThrow('no')
    const id = await committed
    await waitUntil(() => published.includes(id), { message: 'it was published' })
    const next = await begin(db, (tx) => outbox.emitIn(tx, newEvent()))
    await waitUntil(() => published.includes(next), { message: 'the next one was published' })
    expect(published).toEqual([id, next])
    await outbox.stop()
    await close()
  }
})
