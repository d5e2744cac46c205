// One aggregate that several processes write to at once: its events leave in the order of commit, many at
// a time, and the other aggregates do not wait for it.
import { expect, it } from 'vitest'
import { groupBy } from '../../../src/runtime/group-by.ts'
import { runProcess } from '../../support/servers/child-process.ts'
import { describeWithKafka, kafkaBrokers, useFixture } from '../../support/fixture.ts'
import { oneKafkaClient } from '../../support/kafka-clients.ts'
import type { Report, Setup } from '../../support/processes/shares-an-aggregate.ts'
import { createTopic, readTopic } from '../../support/servers/topic-reader.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'

const fixture = useFixture()

const NAMES = ['a', 'b', 'c', 'd']
const SHARED = 1_000
const OWN = 50

describeWithKafka('1,000 events on one aggregate from four processes', () => {
  it('leave once, in order and in batches, and hold up no other aggregate', async () => {
    const topic = uniqueName('hot')
    await createTopic(kafkaBrokers(), topic)
    await fixture.sql`create table counters (name text primary key, n int not null)`
    await fixture.sql`insert into counters values ('ready', 0), ('shared', 0), ('done', 0)`
    const setup = {
      url: fixture.url,
      broker: kafkaBrokers()[0]!,
      client: oneKafkaClient.name,
      topic,
      instances: NAMES.length,
      sharedEvents: SHARED / NAMES.length,
      ownEvents: OWN,
    }
    const reports = await Promise.all(NAMES.map((name) => runInstance({ ...setup, name })))
    const reader = await readTopic(kafkaBrokers(), topic)
    const messages = await reader.readToEnd()
    await reader.stop()

    const shared = messages.filter(({ key }) => key === 'shared')
    expect(shared.map(({ value }) => Number(value))).toEqual(upTo(SHARED))
    // All four at a time, not one after another.
    const early = new Set(shared.slice(0, SHARED / 2).map(({ headers }) => headers['written-by']))
    expect(early).toEqual(new Set(NAMES))
    const calls = reports.flatMap(({ sharedBatches }) => sharedBatches)
    console.log(
      `${SHARED} events of one aggregate left in ${calls.length} calls, at most ${Math.max(...calls)} at once`,
    )
    expect(calls.length).toBeLessThan(SHARED * 0.75)

    for (const [n, name] of NAMES.entries()) {
      const own = messages.filter(({ key }) => key?.startsWith(`${name}-`))
      const numbers = [...groupBy(own, ({ key }) => key).values()].map((ofOne) =>
        ofOne.map(({ value }) => Number(value)),
      )
      expect(numbers.every(isAscending)).toBe(true)
      expect(numbers.flat().toSorted((x, y) => x - y)).toEqual([0, ...upTo(OWN)])
      expect(reports[n]!.ownImmediate).toBe(own.length)
      expect(await countPublishedMeanwhile(`${name}-%`)).toBeGreaterThan(OWN / 2)
    }
  }, 120_000)
})

async function runInstance(setup: Setup): Promise<Report> {
  const end = await runProcess('shares-an-aggregate', [JSON.stringify(setup)])
  expect(end).toMatchObject({ code: 0, output: expect.stringMatching(/^{.*}\n$/) as string })
  return JSON.parse(end.output) as Report
}

/** How many of these events went out while the shared aggregate had some to send. */
async function countPublishedMeanwhile(aggregates: string): Promise<number> {
  const [row] = await fixture.sql`
    with shared as (select min(published_at) as first, max(published_at) as last
      from outbox where aggregate_id = 'shared')
    select count(*)::int as n from outbox, shared
    where aggregate_id like ${aggregates} and published_at between first and last`
  return row?.['n'] as number
}

function upTo(last: number): number[] {
  return Array.from({ length: last }, (_, n) => n + 1)
}

function isAscending(numbers: readonly number[]): boolean {
  return numbers.every((number, n) => n === 0 || number > numbers[n - 1]!)
}
