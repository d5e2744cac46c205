// What `aftercommit status` and `aftercommit instances` show, and what they call trouble.
import { afterEach, describe, expect, it } from 'vitest'
import { readCli, runCli } from '../../support/built-cli.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { useFixture } from '../../support/fixture.ts'
import { seed } from '../../support/seeded-events.ts'
import { seedInstance } from '../../support/seeded-instances.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture({ partitioned: false })
const here = () => ({ url: fixture.url })
const read = <T>(...args: string[]) => readCli<T>(args, here())
const run = (...args: string[]) => runCli(args, here())

afterEach(async () => {
  await fixture.sql`truncate outbox_instances`
})

describe('status', () => {
  it('says how it is, and ends with 3 once a limit is exceeded', async () => {
    await seedInstance(fixture.sql)
    await seed(fixture.sql, [{ status: 'published' }, { secondsAgo: 600 }])
    const late = await run('status')
    expect(late.code).toBe(3)
    expect(late.stdout).toContain('! the oldest unsent event has waited for 10 min')
    const lenient = ['status', '--max-lag', '1h']
    expect(await read(...lenient)).toMatchObject({
      ok: true,
      pending: { count: 1, exact: true },
      published: { count: 1 },
      instances: { running: 1, unseen: 0 },
    })
    await seed(fixture.sql, [{ status: 'dead_letter' }])
    expect(await run(...lenient)).toMatchObject({ code: 3 })
    expect(await run(...lenient, '--max-dead', '1')).toMatchObject({ code: 0 })
    expect(await run(...lenient, '--max-dead', '1', '--max-pending', '0')).toMatchObject({
      code: 3,
    })
  })

  it('ends with 3 while events wait and no instance runs the fallback', async () => {
    await seed(fixture.sql, [{ status: 'failed', attempts: 1, dueInSeconds: 600 }])
    const nobody = await run('status')
    expect(nobody.code).toBe(3)
    expect(nobody.stdout).toContain('! events wait, and no instance runs')
    await seedInstance(fixture.sql, { poller: false })
    expect(await read('status')).toMatchObject({ ok: true })
    await seed(fixture.sql, [{}])
    expect((await run('status')).stdout).toContain(
      '! 1 event is due, and no running instance runs the fallback; start aftercommit relay with your publishers, handlers included',
    )
    await seedInstance(fixture.sql)
    expect(await read('status')).toMatchObject({ ok: true, troubles: [] })
  })

  it('ends with 3 while a running instance cannot reach a destination', async () => {
    const circuits = [{ publisher: 'kafka', topic: 'orders', forMs: 90_000, error: 'Error: gone' }]
    await seedInstance(fixture.sql, { seenSecondsAgo: 100, report: { circuits } })
    expect(await read('status')).toMatchObject({ ok: true, circuits: [] })
    await seedInstance(fixture.sql, { report: { circuits } })
    const idle = await run('status')
    expect(idle.code).toBe(0)
    expect(idle.stdout).toContain(
      "the topic 'orders' of the publisher 'kafka' was out of reach; nothing waits for it any more",
    )
    await seed(fixture.sql, [{ topic: 'orders' }])
    const { code, stdout } = await run('status')
    expect(code).toBe(3)
    expect(stdout).toContain(
      "! the topic 'orders' of the publisher 'kafka' has been out of reach for 1 min in 1 of 1 running instances: Error: gone",
    )
    const found = await readCli(['status'], here(), 3)
    expect(found).toMatchObject({ circuits: [{ topic: 'orders', instances: 1 }] })
  })

  it('says since when a process that it counts as running has not been seen', async () => {
    await seedInstance(fixture.sql)
    expect((await run('status')).stdout).toMatch(/^instances +1 running$/m)
    await seedInstance(fixture.sql, { workerId: 'killed', seenSecondsAgo: 14 })
    expect((await run('status')).stdout).toMatch(
      /^instances +2 running \(one last seen 1\d s ago\)$/m,
    )
    await fixture.sql`delete from outbox_instances where worker_id <> 'killed'`
    await seedInstance(fixture.sql, { workerId: 'lost', seenSecondsAgo: 300 })
    expect((await run('status')).stdout).toMatch(
      /^instances +1 running \(last seen 1\d s ago\), 1 not seen lately$/m,
    )
  })

  it('says how long ago the last event was saved', async () => {
    expect(await read('status')).toMatchObject({ newestAt: null })
    await seed(fixture.sql, [{ secondsAgo: 7_200, status: 'published' }])
    await seed(fixture.sql, [{ secondsAgo: 300, status: 'published' }])
    expect((await run('status')).stdout).toMatch(/^newest event +saved 5 min ago$/m)
    const { newestAt } = await read<{ newestAt: string }>('status')
    expect(Math.abs(Date.now() - 300_000 - Date.parse(newestAt))).toBeLessThan(60_000)
  })

  it('says latencies in units that people read', async () => {
    await seed(fixture.sql, [{ status: 'published' }])
    await fixture.sql`update outbox set published_at = created_at + interval '39987 ms'`
    expect((await run('status')).stdout).toMatch(/^latency +median 40 s, p95 40 s /m)
  })
})

describe('instances', () => {
  it('report a circuit that opens, to status and doctor', async () => {
    const error = new Error('connect ECONNREFUSED')
    const publisher = scriptedPublisher(() => ({ ok: false, kind: 'transient', error }))
    const outbox = fixture.outbox({ publisher })
    await outbox.start()
    await outbox.withOutbox(async (_, emit) => emit(newEvent()))
    await waitUntil(async () => (await outbox.instances())[0]!.report.circuits.length > 0, {
      message: 'the next beat reports the circuit',
    })
    for (const command of ['status', 'doctor']) {
      const { code, stdout } = await run(command)
      expect(code).toBe(3)
      expect(stdout).toMatch(/out of reach for .* in 1 of 1 running instances: .*ECONNREFUSED/)
    }
    expect((await run('instances')).stdout).toMatch(/has been out of reach for .*ECONNREFUSED/)
  })

  it('calls one that was not seen for a minute lost', async () => {
    await seedInstance(fixture.sql, { workerId: 'here', seenSecondsAgo: 13 })
    await seedInstance(fixture.sql, { workerId: 'slow', seenSecondsAgo: 32 })
    await seedInstance(fixture.sql, { workerId: 'gone', seenSecondsAgo: 300 })
    const { stdout } = await run('instances')
    expect(stdout).toMatch(/^here .* 1\d s ago /m)
    expect(stdout).toMatch(/^slow .* 3\d s ago \(late\) /m)
    expect(stdout).toMatch(/^gone .* 5 min ago \(lost\) /m)
  })

  it('shows what each has sent, what it holds, and what it cannot reach', async () => {
    const circuits = [{ publisher: 'kafka', topic: 'orders', forMs: 90_000, error: 'Error: gone' }]
    const published = { immediate: 120, fallback: 7 }
    await seedInstance(fixture.sql, { report: { circuits, published, inFlight: 3 } })
    const { stdout } = await run('instances')
    const [head, row, circuit] = stdout.split('\n')
    expect(head).toMatch(/ IN FLIGHT +PUBLISHED /)
    expect(row).toMatch(/ 3 +120 \+ 7 /)
    expect(circuit).toContain(
      "the topic 'orders' of the publisher 'kafka' has been out of reach for 1 min: Error: gone",
    )
    expect(await read('instances')).toMatchObject([
      { report: { inFlight: 3, published, circuits } },
    ])
  })
})
