// Rule 3: if the outcome of COMMIT is unknown, the immediate path publishes nothing; the fallback finds
// the row if it exists. The proxy breaks the connection at the COMMIT itself.
import { expect, it } from 'vitest'
import { CONNECTION_LOST, isCommit, SERVED_DRIVERS } from '../../support/drivers.ts'
import { describeEach, WATCHABLE } from '../../support/fixture.ts'
import { useProxied } from '../../support/proxied.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import type { Verdict } from '../../support/servers/tcp-proxy.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

describeEach(SERVED_DRIVERS, (fixture) => {
  const proxied = useProxied(fixture)

  async function commitThroughBrokenConnection(verdict: Verdict) {
    const handled: string[] = []
    const handlers = { OrderCompleted: (event: { id: string }) => void handled.push(event.id) }
    const outbox = fixture.handling(handlers, { db: proxied.db, ...WATCHABLE })
    await outbox.start()
    proxied.proxy.intercept((chunk) => (isCommit(chunk) ? verdict : 'forward'))
    const work = outbox.withOutbox(async (_, emit) => emit(newEvent()))
    await expect(work).rejects.toThrow(CONNECTION_LOST)
    proxied.proxy.intercept(null)
    // Whatever the immediate path had accepted would be finished by this.
    await outbox.stop()
    expect(handled).toEqual([])
    return { other: fixture.handling(handlers), handled }
  }

  it('publishes nothing at once when the answer to COMMIT is lost, and delivers later what committed', async () => {
    const { other, handled } = await commitThroughBrokenConnection('forward-and-cut')
    const [row] = await waitUntil(async () => (await fixture.rows()).length > 0 && fixture.rows(), {
      message: 'the transaction committed',
    })
    await waitUntil(() => other.pollOnce(), { message: 'the fallback takes the row' })
    expect(handled).toEqual([row!.id])
    expect(await fixture.rows()).toMatchObject([{ status: 'published' }])
  })

  it('publishes nothing, ever, when COMMIT did not arrive', async () => {
    const { other, handled } = await commitThroughBrokenConnection('drop-and-cut')
    // The server ends the orphaned transaction; until then its row would not be seen anyway.
    await waitUntil(
      async () => {
        const [open] = await fixture.sql`select count(*)::int from pg_stat_activity
          where datname = current_database() and state like 'idle in transaction%'`
        return open?.['count'] === 0
      },
      { message: 'the orphaned transaction ended' },
    )
    expect(await other.pollOnce()).toBe(0)
    expect(await fixture.rows()).toEqual([])
    expect(handled).toEqual([])
  })

  it('throws what the work threw, also when the connection breaks at ROLLBACK', async () => {
    const outbox = fixture.handling({}, { db: proxied.db, ...WATCHABLE })
    const failure = new Error('the business said no')
    proxied.proxy.intercept((chunk) =>
      /rollback/i.test(chunk.toString('latin1')) ? 'drop-and-cut' : 'forward',
    )
    const work = outbox.withOutbox(async (_, emit) => {
      emit(newEvent())
      throw failure
    })
    await expect(work).rejects.toBe(failure)
    proxied.proxy.intercept(null)
    expect(await fixture.rows()).toEqual([])
  })
})
