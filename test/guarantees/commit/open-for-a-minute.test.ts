// A transaction with emitIn() that stays open for a minute, many times the threshold: nothing of it is published before its
// COMMIT, and all of it soon after, without a poller.
import { expect, it } from 'vitest'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { SERVED_DRIVERS, type TestDriver } from '../../support/drivers.ts'
import { describeEach, WATCHABLE } from '../../support/fixture.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

// Side by side they take a minute; one after the other would take four.
describeEach([SERVED_DRIVERS[0]!], (fixture) => {
  it('publishes once it commits, and not if it rolls back', { timeout: 150_000 }, async () => {
    const results = await Promise.all(SERVED_DRIVERS.map((driver) => stayOpen(driver)))
    for (const { published, committed } of results) expect(published).toEqual(committed)
  })

  async function stayOpen(driver: TestDriver) {
    const { db, close } = driver.open(fixture.url)
    const { begin, query } = driver
    const published: string[] = []
    const publisher = scriptedPublisher((event) => {
      published.push(event.id)
      return acked(event)
    })
    const outbox = fixture.outbox({ db, publisher, ...WATCHABLE })
    await outbox.start()
    const long = begin(db, async (tx) => {
      const id = await outbox.emitIn(tx, newEvent())
      await query(tx, 'select pg_sleep(60)::text')
      expect(published).toEqual([])
      return id
    })
    const rolledBack = begin(db, async (tx) => {
      await outbox.emitIn(tx, newEvent())
      await query(tx, 'select pg_sleep(60)::text')
      throw new Error('no')
    })
    await expect(rolledBack).rejects.toThrow('no')
    const committed = [await long]
    await waitUntil(() => published.length === 1, { message: 'it was published' })
    committed.push(await begin(db, (tx) => outbox.emitIn(tx, newEvent())))
    await waitUntil(() => published.length > 1, { message: 'the next one was published' })
    await outbox.stop()
    await close()
    return { published, committed }
  }
})
