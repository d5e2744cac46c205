// start() and stop(), and the switches that leave parts of the path out.
import { AsyncLocalStorage } from 'node:async_hooks'
import { expect, it } from 'vitest'
import { silentLogger } from '../../../src/runtime/logger.ts'
import { blockedHandler } from '../../support/timing/blocked-handler.ts'
import { runProcess } from '../../support/servers/child-process.ts'
import { connect } from '../../support/servers/database.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { defer } from '../../support/timing/deferred.ts'
import { describeWithKafka, kafkaBrokers, useFixture, WATCHABLE } from '../../support/fixture.ts'
import { kafkaClients } from '../../support/kafka-clients.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { startProxy } from '../../support/servers/tcp-proxy.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { msBeyond, nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()

function countingHandler() {
  const handled: string[] = []
  return { handled, handlers: { OrderCompleted: (e: { id: string }) => void handled.push(e.id) } }
}

it('finishes and records what is under way before stop() resolves', async () => {
  const { handler, started, release } = blockedHandler()
  const outbox = fixture.handling({ OrderCompleted: handler })
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await started
  const stopped = outbox.stop()
  release()
  await stopped
  expect(await fixture.rows()).toMatchObject([{ status: 'published' }])
})

/** Stops the outbox; tells whether that has ended by now. */
function stopping(outbox: { stop(): Promise<void> }) {
  let ended = false
  const stopped = outbox.stop().then(() => {
    ended = true
  })
  return { stopped, hasEnded: () => ended }
}

it.each([
  ['the immediate path', { immediate: true, poller: false }],
  ['the fallback', { immediate: false, poller: true }],
])('does not end stop() before a send of %s has', async (_, paths) => {
  const { handler, started, release } = blockedHandler()
  const outbox = fixture.handling({ OrderCompleted: handler }, { ...paths, threshold: '1m' })
  await outbox.start()
  await outbox.withOutbox(async (__, emit) => emit(newEvent()))
  await started
  const { stopped, hasEnded } = stopping(outbox)
  expect(await fixture.rows()).toMatchObject([{ status: 'pending' }])
  expect(hasEnded()).toBe(false)
  release()
  await stopped
  expect(await fixture.rows()).toMatchObject([{ status: 'published' }])
})

it('still sends what was committed right before stop()', async () => {
  const { handler, started, release } = blockedHandler()
  const outbox = fixture.handling({ OrderCompleted: handler }, { threshold: '1m' })
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  const { stopped, hasEnded } = stopping(outbox)
  await started
  expect(hasEnded()).toBe(false)
  release()
  await stopped
  expect(await fixture.rows()).toMatchObject([{ status: 'published' }])
})

it('does not end stop() before the outcome is recorded', async () => {
  const { handler, started, release } = blockedHandler()
  const outbox = fixture.handling({ OrderCompleted: handler }, { threshold: '1m' })
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await started
  const ending = await fixture.sql.begin(async (tx) => {
    await tx`select 1 from outbox for update`
    release()
    const { stopped, hasEnded } = stopping(outbox)
    await waitUntil(
      async () => {
        const [waiting] = await fixture.sql`
          select 1 from pg_locks join pg_stat_activity using (pid)
          where not granted and datname = current_database()`
        return waiting !== undefined
      },
      { message: 'the record waits for the lock' },
    )
    expect(hasEnded()).toBe(false)
    return { stopped }
  })
  await ending.stopped
  expect(await fixture.rows()).toMatchObject([{ status: 'published' }])
})

it('starts and stops although its publisher can neither connect nor disconnect', async () => {
  const calls: string[] = []
  const fail = (call: string) => async () => {
    calls.push(call)
    throw new Error(`cannot ${call}`)
  }
  const publisher = {
    ...handlersPublisher({ handlers: {} }),
    connect: fail('connect'),
    disconnect: fail('disconnect'),
  }
  const outbox = fixture.outbox({ publisher })
  const told: string[] = []
  outbox.events.on('error', ({ step, error }) => told.push(`${step}: ${error.message}`))
  await outbox.start()
  await outbox.stop()
  expect(calls).toEqual(['connect', 'disconnect'])
  // A broker that is away at the start is no error: the first send tells.
  expect(told).toEqual(['disconnect: cannot disconnect'])
})

it('does not wait in start() for a broker that does not answer', async () => {
  const connected = defer()
  const publisher = { ...handlersPublisher({ handlers: {} }), connect: () => connected.promise }
  await expect(fixture.outbox({ publisher }).start()).resolves.toBeUndefined()
})

it('can be started again after a start that failed', async () => {
  const { handlers, handled } = countingHandler()
  const outbox = fixture.handling(handlers, { table: 'later', threshold: '1m' })
  await expect(outbox.start()).rejects.toMatchObject({ code: 'TABLE_MISSING' })
  await outbox.migrate()
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await outbox.stop()
  expect(handled).toHaveLength(1)
})

it('ends stop() after stopTimeout and leaves the row to the fallback', async () => {
  const { handler, started } = blockedHandler()
  const outbox = fixture.handling(
    { OrderCompleted: handler },
    { ...WATCHABLE, stopTimeout: '50ms' },
  )
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await started
  await outbox.stop()
  expect(await fixture.rows()).toMatchObject([{ status: 'pending', attempts: 0 }])
  const { handlers, handled } = countingHandler()
  const other = fixture.handling(handlers)
  await waitUntil(() => other.pollOnce(), { message: 'the lease of the stopped one ends' })
  expect(handled).toHaveLength(1)
})

it('keeps stopTimeout with a broker that is away, whose client can neither send nor be closed', async () => {
  const [started, never] = [defer(), defer()]
  const publisher = {
    ...scriptedPublisher(async (event) => {
      started.resolve()
      await never.promise
      return acked(event)
    }),
    disconnect: () => never.promise,
  }
  const outbox = fixture.outbox({ publisher, stopTimeout: '4s' })
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await started.promise
  // Closing has a limit of two seconds of its own.
  expect(await msBeyond(4_000, () => outbox.stop())).toBeLessThan(1_500)
})

it('frees at once what it could not send in time, so that a deploy adds no latency', async () => {
  const [started, never] = [defer(), defer()]
  let calls = 0
  const outbox = fixture.handling(
    {
      OrderCompleted: async () => {
        calls += 1
        started.resolve()
        await never.promise
      },
    },
    { stopTimeout: '50ms', threshold: '1h' },
  )
  await outbox.start()
  for (const aggregateId of ['a', 'a', 'b', 'a']) {
    await outbox.withOutbox(async (_, emit) => emit(newEvent({ aggregateId })))
    await started.promise
  }
  await outbox.stop()
  // The first of each lane may be half way through its handler; who knows. The rest is free.
  const rows = await fixture.rows()
  expect(rows.map(({ available }) => available)).toEqual([false, true, false, true])

  // Started again, it does not let a new event overtake those that it freed.
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => emit(newEvent({ aggregateId: 'a' })))
  await outbox.stop()
  expect(calls).toBe(2)
})

it('stops on a signal, then lets the signal have its way', async () => {
  const { output, signal } = await runProcess('stops-on-signal', [fixture.url])
  expect(signal).toBe('SIGTERM')
  expect(output.trim().split('\n')).toEqual(['handling', 'handled'])
  expect(await fixture.rows()).toMatchObject([{ status: 'published' }])
})

it('lets the process end after stop()', async () => {
  const { code, output } = await runProcess('starts-and-stops', [fixture.url])
  expect({ code, output }).toEqual({ code: 0, output: 'stopped\n' })
})

it('may be started and stopped any number of times, also at once', async () => {
  const { handlers, handled } = countingHandler()
  const outbox = fixture.handling(handlers)
  await outbox.stop()
  await Promise.all([outbox.start(), outbox.start()])
  await Promise.all([outbox.stop(), outbox.stop()])
  await outbox.start()
  const published = nextEvent(outbox.events, 'event:published')
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await published
  expect(handled).toHaveLength(1)
})

it('starts again when it is told to while it stops', async () => {
  const { handlers, handled } = countingHandler()
  const outbox = fixture.handling(handlers)
  await outbox.start()
  const stopped = outbox.stop()
  await outbox.start()
  await stopped
  const published = nextEvent(outbox.events, 'event:published')
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await published
  expect(handled).toHaveLength(1)
})

it('saves for the fallback what is committed while stopped', async () => {
  const { handlers, handled } = countingHandler()
  const outbox = fixture.handling(handlers)
  await outbox.start()
  await outbox.stop()
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  expect(await fixture.rows()).toMatchObject([{ status: 'pending', available: true }])
  expect(await outbox.pollOnce()).toBe(1)
  expect(handled).toHaveLength(1)
})

it('stops at the end of an `await using` block', async () => {
  const { handlers } = countingHandler()
  const outbox = fixture.handling(handlers)
  {
    await using running = outbox
    await running.start()
  }
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  expect(await fixture.rows()).toMatchObject([{ status: 'pending', available: true }])
})

it('leaves everything to the poller with immediate: false', async () => {
  const { handlers } = countingHandler()
  const outbox = fixture.handling(handlers, { immediate: false, poller: true })
  await outbox.start()
  const published = nextEvent(outbox.events, 'event:published')
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  expect(await published).toMatchObject({ path: 'fallback', latencyMs: null })
})

it('only saves with enabled: false', async () => {
  const { handlers } = countingHandler()
  const outbox = fixture.handling(handlers, { enabled: false })
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await outbox.stop()
  expect(await fixture.rows()).toMatchObject([{ status: 'pending', available: true }])
})

it('ends stop() although the database is gone and outcomes wait to be recorded', async () => {
  const { handler, started, release } = blockedHandler()
  const warnings: string[] = []
  // On one connection, so that none is being opened when the pool is closed: postgres.js would reject its query for the
  // array types where nothing can catch it.
  const connection = connect(fixture.url, { max: 1 })
  const outbox = fixture.handling(
    { OrderCompleted: handler },
    {
      db: connection.db,
      stopTimeout: '100ms',
      logger: { ...silentLogger, warn: (_, message) => void warnings.push(message) },
    },
  )
  await outbox.start()
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await started
  const failing = nextEvent(outbox.events, 'error', ({ step }) => step === 'record')
  await connection.close()
  release()
  await failing
  await outbox.stop()
  expect(warnings).toEqual([expect.stringMatching(/stopTimeout passed/)])
  expect(await fixture.rows()).toMatchObject([{ status: 'pending' }])
  // Nothing goes on in the background: a further stop() finds nothing to wait for.
  await waitUntil(
    async () => {
      warnings.length = 0
      await outbox.stop()
      return warnings.length === 0
    },
    { message: 'the outcome that cannot be recorded was given up' },
  )
})

it('runs handlers outside of every unit of work and request', async () => {
  const request = new AsyncLocalStorage<string>()
  const seen = defer<{ request: string | undefined; emitted: string }>()
  // On another pool: a unit of work inside that of another outbox on the same one is refused.
  const elsewhere = connect(fixture.url)
  const outer = fixture.handling({}, { db: elsewhere.db })
  const outbox = fixture.handling({
    OrderCompleted: () => {
      const emitted = attempt(() => outer.emit(newEvent()))
      seen.resolve({ request: request.getStore(), emitted })
    },
  })
  await outbox.start()
  await request.run('a request', () =>
    outer.withOutbox(async () => {
      await outbox.withOutbox(async (_, emit) => emit(newEvent()))
      expect(await seen.promise).toEqual({ request: undefined, emitted: 'NO_UNIT_OF_WORK' })
    }),
  )
  await elsewhere.close()
})

function attempt(action: () => unknown): string {
  try {
    return String(action())
  } catch (error) {
    return (error as { code: string }).code
  }
}

describeWithKafka('a broker that answers after stop()', () => {
  it.each(kafkaClients.map((client) => [client.title, client] as const))(
    'adds nothing to the log, which goes on with the next start: %s',
    async (_, client) => {
      const proxy = await startProxy({ port: Number(kafkaBrokers()[0]!.split(':')[1]) })
      proxy.halfOpen()
      const logger = recordingLogger()
      const publisher = client.publisher([`127.0.0.1:${proxy.port}`])
      const outbox = fixture.outbox({ publisher, logger, stopTimeout: '300ms' })
      await outbox.start()
      await outbox.withOutbox(async (__, emit) => emit(newEvent()))
      await outbox.stop()
      const late = nextEvent(outbox.events, 'circuit:open')
      proxy.cut()
      await late
      await outbox.stop()
      expect(logger.lines.map(({ message }) => message)).toEqual([
        'outbox started',
        expect.stringMatching(/^stopTimeout passed/),
        'outbox stopped',
      ])
      await outbox.start()
      expect(logger.lines.at(-1)?.message).toBe('outbox started')
      await proxy.refuse()
      await outbox.stop()
      await proxy.stop()
    },
  )
})
