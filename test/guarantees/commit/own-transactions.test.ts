// Rule 1 where the application begins its transactions itself: on outbox.db, or past the outbox with emitIn(). The event
// exists exactly if that transaction committed, and is published soon after. Whatever would break that is refused.
import { beforeAll, describe, expect, it } from 'vitest'
import { createInbox } from '../../../src/inbox/inbox.ts'
import type { AnyDatabase, Outbox } from '../../../src/index.ts'
import { useProxied } from '../../support/proxied.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { ALL_DRIVERS, CONNECTION_LOST, isCommit, SERVED_DRIVERS } from '../../support/drivers.ts'
import { describeEach, type Fixture, WATCHABLE } from '../../support/fixture.ts'
import type { Verdict } from '../../support/servers/tcp-proxy.ts'
import { defer } from '../../support/timing/deferred.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const failure = new Error('the business said no')

/** An outbox without a poller, and the ids of what it has published. */
async function running(
  fixture: Fixture<AnyDatabase>,
  options: Parameters<Fixture<AnyDatabase>['handling']>[1] = {},
): Promise<{ outbox: Outbox; published: string[] }> {
  const published: string[] = []
  const publisher = scriptedPublisher((event) => {
    published.push(event.id)
    return acked(event)
  })
  const outbox = fixture.outbox({ publisher, ...options })
  await outbox.start()
  return { outbox, published }
}

function arrival(published: readonly string[], ids: readonly string[]) {
  return waitUntil(() => ids.every((id) => published.includes(id)), {
    message: 'the events were published',
  })
}

describeEach(
  ALL_DRIVERS.filter(({ beginOn }) => beginOn),
  (fixture) => {
    const { query, nest, beginOn } = fixture.driver
    const begin = beginOn!

    it('makes a transaction on outbox.db a unit of work, at any depth', async () => {
      const { outbox, published } = await running(fixture)
      const helper = async () => outbox.emit(newEvent({ type: 'Deep' }))
      const ids = await begin(outbox.db, async (tx) => {
        const first = await helper()
        const kept = await nest(tx, helper)
        await nest(tx, async () => {
          await helper()
          throw failure
        }).catch(() => {})
        const joined = await outbox.withOutbox(async (_, emit) => emit(newEvent()))
        return [first, kept, joined]
      })
      await arrival(published, ids)
      expect(published).toHaveLength(3)
      expect((await fixture.rows()).map(({ id }) => id)).toEqual(ids)
    })

    it('publishes nothing of a transaction on outbox.db that rolled back', async () => {
      const { outbox, published } = await running(fixture)
      const rolledBack = begin(outbox.db, async () => {
        outbox.emit(newEvent())
        throw failure
      })
      await expect(rolledBack).rejects.toBe(failure)
      const id = await begin(outbox.db, async () => outbox.emit(newEvent()))
      await arrival(published, [id])
      expect(published).toEqual([id])
      expect(await fixture.rows()).toMatchObject([{ id }])
    })

    it('begins the transaction with its settings, and leaves the rest of the handle as it is', async () => {
      const { outbox } = await running(fixture)
      const [row] = await begin(
        outbox.db,
        (tx) => query(tx, 'show transaction_isolation'),
        'serializable',
      )
      expect(row).toEqual({ transaction_isolation: 'serializable' })
      expect(await query(outbox.db, 'select 1 as one')).toEqual([{ one: 1 }])
    })
  },
)

describeEach(
  SERVED_DRIVERS.filter(({ beginOn }) => beginOn),
  (fixture) => {
    const begin = fixture.driver.beginOn!

    it('keeps a transaction inside another on outbox.db apart from it', async () => {
      const { outbox, published } = await running(fixture)
      const outer = begin(outbox.db, async () => {
        outbox.emit(newEvent({ type: 'Outer' }))
        const inner = await begin(outbox.db, async () => outbox.emit(newEvent({ type: 'Inner' })))
        await arrival(published, [inner])
        outbox.emit(newEvent({ type: 'OuterAgain' }))
        throw failure
      })
      await expect(outer).rejects.toBe(failure)
      expect(await fixture.rows()).toMatchObject([{ event_type: 'Inner' }])

      const kept = await begin(outbox.db, async () => {
        const inner = begin(outbox.db, async () => {
          outbox.emit(newEvent({ type: 'RolledBack' }))
          throw failure
        })
        await expect(inner).rejects.toBe(failure)
        return outbox.emit(newEvent({ type: 'Kept' }))
      })
      await arrival(published, [kept])
      expect((await fixture.rows()).map((row) => row.event_type)).toEqual(['Inner', 'Kept'])
    })

    it('refuses what would begin a second transaction inside one that is not watched', async () => {
      const { outbox } = await running(fixture)
      const inbox = createInbox({ db: fixture.db, consumer: 'billing' })
      await fixture.driver.begin(fixture.db, async () => {
        expect(() => outbox.emit(newEvent())).toThrow(
          expect.objectContaining({
            code: 'NO_UNIT_OF_WORK',
            message: expect.stringMatching(/outbox\.db.*emitIn/) as string,
          }),
        )
        await expect(outbox.withOutbox(async () => {})).rejects.toMatchObject({
          code: 'NESTED',
          message: expect.stringMatching(/of your own.*outbox\.db.*emitIn/) as string,
        })
        await expect(inbox.once({ id: 'a' }, async () => {})).rejects.toMatchObject({
          code: 'NESTED',
          message: expect.stringMatching(/onceIn/) as string,
        })
      })
      await outbox.withOutbox(async () => {})
    })
  },
)

describeEach(ALL_DRIVERS, (fixture) => {
  const { query, nest, begin } = fixture.driver

  beforeAll(async () => {
    await fixture.sql`create table if not exists orders (id text primary key)`
  })

  it('publishes what emitIn() saved soon after the COMMIT of a transaction that it does not watch', async () => {
    const { outbox, published } = await running(fixture)
    const event = newEvent()
    const ids = await begin(fixture.db, async (tx) => {
      await query(tx, `insert into orders values ('a')`)
      const one = await outbox.emitIn(tx, event)
      return [one, ...(await outbox.emitIn(tx, [event, newEvent()]))]
    })
    await arrival(published, ids)
    expect(published.filter((id) => id !== ids[2])).toEqual(ids.slice(0, 2))
    expect(new Set(published).size).toBe(3)
    await waitUntil(
      async () => (await fixture.rows()).every(({ status }) => status === 'published'),
      { message: 'all are recorded' },
    )
  })

  it('saves what several calls of emitIn() emit at once into one transaction, while cancelIn() runs beside them', async () => {
    const { outbox, published } = await running(fixture)
    const { scheduled } = outbox
    const later = newEvent({ deliverAfter: '1h' })
    const planned = await outbox.withOutbox(async (_, emit) => emit(later))
    const ids = await begin(fixture.db, async (tx) => {
      const [first, isCancelled, ...others] = await Promise.all([
        outbox.emitIn(tx, newEvent()),
        scheduled.cancelIn(tx, planned),
        outbox.emitIn(tx, newEvent()),
        outbox.emitIn(tx, newEvent()),
      ])
      expect(isCancelled).toBe(true)
      return [first, ...others]
    })
    await arrival(published, ids)
    expect(new Set((await fixture.rows()).map(({ id }) => id))).toEqual(new Set(ids))
  })

  it('publishes nothing of emitIn() after a rollback, of the transaction or of a savepoint', async () => {
    const { outbox, published } = await running(fixture)
    const rolledBack = begin(fixture.db, async (tx) => {
      await outbox.emitIn(tx, newEvent())
      throw failure
    })
    await expect(rolledBack).rejects.toBe(failure)
    const kept = await begin(fixture.db, async (tx) => {
      const first = await outbox.emitIn(tx, newEvent())
      await query(tx, 'savepoint mine')
      await outbox.emitIn(tx, newEvent())
      await query(tx, 'rollback to savepoint mine')
      return first
    })
    await arrival(published, [kept])
    expect(await fixture.rows()).toMatchObject([{ id: kept }])
    expect(published).toEqual([kept])
  })

  it('rejects an event that emit() would refuse, and saves nothing of it', async () => {
    const { outbox } = await running(fixture)
    const work = begin(fixture.db, (tx) => outbox.emitIn(tx, newEvent({ payload: 1n })))
    await expect(work).rejects.toMatchObject({ code: 'PAYLOAD_NOT_JSON' })
    expect(await fixture.rows()).toEqual([])
  })

  it('refuses what is not an open transaction, before anything is saved', async () => {
    const { outbox } = await running(fixture)
    const { client } = fixture.db as { client?: unknown }
    for (const wrong of [fixture.db, outbox, client, undefined, 'tx']) {
      await expect(outbox.emitIn(wrong as never, newEvent())).rejects.toMatchObject({
        code: 'OPTIONS_INVALID',
        message: expect.stringMatching(/tx must be an open transaction/) as string,
      })
    }
    expect(await fixture.rows()).toEqual([])
  })

  it('is emit() in a transaction of this outbox, and keeps the order of both', async () => {
    const { outbox, published } = await running(fixture)
    const on = { aggregateId: 'one' }
    let late: unknown
    const ids = await outbox.withOutbox(async (tx, emit) => {
      late = tx
      const emitted = [
        emit(newEvent(on)),
        await outbox.emitIn(tx, newEvent(on)),
        emit(newEvent(on)),
      ]
      await nest(tx, async (inner) => {
        await outbox.emitIn(inner, newEvent(on))
        throw failure
      }).catch(() => {})
      return emitted
    })
    await arrival(published, ids)
    expect(published).toEqual(ids)
    await expect(outbox.emitIn(late as never, newEvent())).rejects.toMatchObject({
      code: 'UNIT_OF_WORK_OVER',
    })
  })
})

describeEach(SERVED_DRIVERS, (fixture) => {
  const { query, begin } = fixture.driver

  it('does not publish while the transaction is open, whoever polls, and does so once it commits', async () => {
    const { outbox, published } = await running(fixture, {
      ...WATCHABLE,
      poller: true,
      pollInterval: '20ms',
    })
    const polled = { count: 0 }
    outbox.events.on('poll:done', () => (polled.count += 1))
    const id = await begin(fixture.db, async (tx) => {
      const saved = await outbox.emitIn(tx, newEvent())
      const [before] = await query(tx, 'select extract(epoch from clock_timestamp())::float8 as at')
      // Longer than the threshold, by the clock that leases are counted with.
      await waitUntil(
        async () => {
          const [row] = await query(
            tx,
            'select extract(epoch from clock_timestamp())::float8 as at',
          )
          return Number(row!['at']) - Number(before!['at']) > 2.5
        },
        { message: 'the threshold has passed' },
      )
      expect(published).toEqual([])
      return saved
    })
    await arrival(published, [id])
    expect(polled.count).toBeGreaterThan(1)
    await waitUntil(async () => (await fixture.rows())[0]?.status === 'published', {
      message: 'recorded',
    })
    expect(published).toEqual([id])
  })

  it('keeps the order of an aggregate, whichever way each event was emitted', async () => {
    const { outbox, published } = await running(fixture, { poller: true, pollInterval: '20ms' })
    const on = { aggregateId: 'one' }
    const ids: string[] = []
    for (let n = 0; n < 20; n += 1) {
      ids.push(await begin(fixture.db, (tx) => outbox.emitIn(tx, newEvent(on))))
      ids.push(await outbox.withOutbox(async (_, emit) => emit(newEvent(on))))
    }
    await arrival(published, ids)
    expect(published).toEqual(ids)
  })

  it('leaves to others what commits after stop(), and what was emitted before start()', async () => {
    const { outbox } = await running(fixture)
    const saved = defer<string>()
    const mayCommit = defer()
    const transaction = begin(fixture.db, async (tx) => {
      saved.resolve(await outbox.emitIn(tx, newEvent()))
      await mayCommit.promise
    })
    const id = await saved.promise
    await outbox.stop()
    mayCommit.resolve()
    await transaction
    expect(await fixture.rows()).toMatchObject([{ id, status: 'pending', available: true }])
    const { outbox: other, published } = await running(fixture)
    await other.pollOnce()
    expect(published).toEqual([id])
  })

  it('saves into the transaction of another outbox on the same database', async () => {
    const { outbox: first } = await running(fixture)
    const { outbox: second, published } = await running(fixture)
    const work = first.withOutbox(async (tx) => {
      await second.emitIn(tx, newEvent())
      throw failure
    })
    await expect(work).rejects.toBe(failure)
    const id = await first.withOutbox((tx) => second.emitIn(tx, newEvent()))
    await arrival(published, [id])
    expect(published).toEqual([id])
  })
})

describeEach(SERVED_DRIVERS, (fixture) => {
  const { begin } = fixture.driver
  const open = (settings: { max: number }) => fixture.driver.open(fixture.url, settings)

  const refused = {
    code: 'OPTIONS_INVALID',
    message: expect.stringMatching(/tx must be an open transaction/) as string,
  }

  it('refuses a transaction that has ended, even if its connection is in another one', async () => {
    const { db, close } = open({ max: 1 })
    const { outbox } = await running(fixture)
    let late: unknown
    await begin(db, async (tx) => void (late = tx))
    await begin(fixture.db, async (tx) => void (late = tx))
    await expect(outbox.emitIn(late as never, newEvent())).rejects.toMatchObject(refused)
    const rolledBack = begin(fixture.db, async (tx) => {
      late = tx
      throw failure
    })
    await expect(rolledBack).rejects.toBe(failure)
    await expect(outbox.emitIn(late as never, newEvent())).rejects.toMatchObject(refused)
    expect(await fixture.rows()).toEqual([])
    await close()
  })

  it('saves nothing when the transaction ends before emitIn() was awaited', async () => {
    const { outbox, published } = await running(fixture)
    let unawaited: Promise<unknown> = Promise.resolve()
    const work = begin(fixture.db, async (tx) => {
      unawaited = outbox.emitIn(tx, newEvent()).catch((error: unknown) => error)
      throw failure
    })
    await expect(work).rejects.toBe(failure)
    const id = await begin(fixture.db, (tx) => outbox.emitIn(tx, newEvent()))
    // postgres.js never answers what is asked of a transaction that is over.
    await Promise.race([unawaited, arrival(published, [id])])
    await arrival(published, [id])
    expect(published).toEqual([id])
    expect(await fixture.rows()).toMatchObject([{ id }])
  })

  it('refuses the transaction of another outbox that has ended, and a failure there does not publish', async () => {
    const { outbox: first, published } = await running(fixture)
    const second = fixture.handling({}, { table: 'nowhere', lockKeys: true })
    const { outbox: third } = await running(fixture)
    let late: unknown
    let unawaited: Promise<unknown> = Promise.resolve()
    await first
      .withOutbox(async (tx, emit) => {
        late = tx
        emit(newEvent())
        unawaited = second.emitIn(tx, newEvent()).catch((error: unknown) => error)
      })
      .catch(() => {})
    expect(await unawaited).toMatchObject({ code: expect.any(String) as string })
    await expect(third.emitIn(late as never, newEvent())).rejects.toMatchObject({
      code: expect.stringMatching(/UNIT_OF_WORK_OVER|OPTIONS_INVALID/) as string,
    })
    const saved = (await fixture.rows()).map(({ id }) => id)
    await first.stop()
    expect(published).toEqual(saved)
  })

  it('wakes the fallback for events that do not fit into memory', async () => {
    // The poller comes by itself in an hour.
    const { outbox, published } = await running(fixture, { poller: true, maxInFlight: 1 })
    const ids = await begin(fixture.db, (tx) => outbox.emitIn(tx, [newEvent(), newEvent()]))
    await arrival(published, ids)
    expect(published.toSorted()).toEqual(ids.toSorted())
  })

  it('hands over what has committed when it stops', async () => {
    const { outbox, published } = await running(fixture)
    const id = await begin(fixture.db, (tx) => outbox.emitIn(tx, newEvent()))
    await outbox.stop()
    expect(published).toEqual([id])
  })

  it('needs no second connection, also with maxBacklog', async () => {
    const { db, close } = open({ max: 1 })
    const { outbox, published } = await running(fixture, { db, maxBacklog: 100 })
    const ids = await begin(db, async (tx) => [
      await outbox.emitIn(tx, newEvent()),
      await outbox.emitIn(tx, newEvent()),
    ])
    await arrival(published, ids)
    await outbox.stop()
    expect(published).toEqual(ids)
    await close()
  })

  it('takes the transactions of every client, whichever its own', async () => {
    const { outbox, published } = await running(fixture)
    for (const driver of SERVED_DRIVERS) {
      const { db, close } = driver.open(fixture.url)
      const id = await driver.begin(db, (tx) => outbox.emitIn(tx, newEvent()))
      await arrival(published, [id])
      expect(published.at(-1)).toBe(id)
      await close()
    }
  })
})

describeEach(
  SERVED_DRIVERS.filter(({ beginOn }) => beginOn),
  (fixture) => {
    const { begin } = fixture.driver

    it('refuses to emit into a unit of work from inside a transaction of the application', async () => {
      const { outbox, published } = await running(fixture)
      const kept = await outbox.withOutbox(async (_, emit) => {
        await begin(fixture.db, async () => {
          expect(() => outbox.emit(newEvent())).toThrow(
            expect.objectContaining({ code: 'NO_UNIT_OF_WORK' }),
          )
          await expect(outbox.withOutbox(async () => {})).rejects.toMatchObject({ code: 'NESTED' })
        })
        return emit(newEvent())
      })
      await arrival(published, [kept])
      expect(await fixture.rows()).toMatchObject([{ id: kept }])
    })

    it('leaves the client of the handle as it is, and checks what transaction() is given', async () => {
      const { outbox } = await running(fixture)
      const [{ $client }, { $client: watched }] = [fixture.db, outbox.db] as {
        $client?: unknown
      }[] as [{ $client?: unknown }, { $client?: unknown }]
      expect(watched).toBe($client)
      await expect(fixture.driver.beginOn!(outbox.db, undefined as never)).rejects.toMatchObject({
        code: 'OPTIONS_INVALID',
        message: expect.stringMatching(/takes a function/) as string,
      })
    })
  },
)

// The transaction runs on a connection that breaks at its COMMIT, the outbox on others.
describeEach(SERVED_DRIVERS, (fixture) => {
  const proxied = useProxied(fixture)

  async function commitThroughBrokenConnection(verdict: Verdict) {
    const { outbox, published } = await running(fixture)
    let id = ''
    const work = fixture.driver.begin(proxied.db, async (tx) => {
      id = await outbox.emitIn(tx, newEvent())
      proxied.proxy.intercept((chunk) => (isCommit(chunk) ? verdict : 'forward'))
    })
    await expect(work).rejects.toThrow(CONNECTION_LOST)
    proxied.proxy.intercept(null)
    return { outbox, published, id }
  }

  it('publishes what emitIn() saved when the answer to COMMIT is lost', async () => {
    const { published, id } = await commitThroughBrokenConnection('forward-and-cut')
    await arrival(published, [id])
    expect(published).toEqual([id])
  })

  it('publishes nothing of emitIn() when COMMIT did not arrive', async () => {
    const { outbox, published, id } = await commitThroughBrokenConnection('drop-and-cut')
    const next = await fixture.driver.begin(fixture.db, (tx) => outbox.emitIn(tx, newEvent()))
    await arrival(published, [next])
    expect(published).not.toContain(id)
    await waitUntil(
      async () => {
        const open = await fixture.sql`select 1 from pg_stat_activity
          where datname = current_database() and state like 'idle in transaction%'`
        return open.length === 0
      },
      { message: 'the orphaned transaction ended' },
    )
    expect((await fixture.rows()).map((row) => row.id)).toEqual([next])
  })
})

describe('a client that the application controls', () => {
  const [onPostgresJs, onNodePostgres] = SERVED_DRIVERS.slice(2)

  describeEach([onPostgresJs!], (fixture) => {
    it('may be a reserved connection with a transaction on it', async () => {
      const { outbox, published } = await running(fixture)
      const { client } = fixture.db as { client: { reserve(): Promise<Reserved> } }
      const reserved = await client.reserve()
      await expect(outbox.emitIn(reserved as never, newEvent())).rejects.toMatchObject({
        code: 'OPTIONS_INVALID',
      })
      await reserved.unsafe('begin')
      const id = await outbox.emitIn(reserved, newEvent())
      await reserved.unsafe('commit')
      reserved.release()
      await arrival(published, [id])
      expect(await fixture.rows()).toMatchObject([{ id }])
    })
  })

  describeEach([onNodePostgres!], (fixture) => {
    it('must have begun a transaction, and has no outbox.db', async () => {
      const { outbox } = await running(fixture)
      const { client: pool } = fixture.db as { client: { connect(): Promise<Reserved> } }
      const client = await pool.connect()
      await expect(outbox.emitIn(client as never, newEvent())).rejects.toMatchObject({
        code: 'OPTIONS_INVALID',
        message: expect.stringMatching(/BEGIN/) as string,
      })
      client.release()
      expect(await fixture.rows()).toEqual([])
      expect(() => outbox.db).toThrow(/has no transaction\(\) to watch.*emitIn/)
    })
  })
})

interface Reserved {
  unsafe(text: string): Promise<unknown>
  release(): void
}
