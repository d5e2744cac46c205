// A process is killed at each step of both paths, exactly there. Another takes over, and nothing is lost,
// invented or out of order; where the table of crashes allows a duplicate, it has the same event id.
import { readFile } from 'node:fs/promises'
import { beforeAll, expect, it } from 'vitest'
import { createOutbox } from '../../../src/index.ts'
import { runProcess } from '../../support/servers/child-process.ts'
import { CRASH_STEPS } from '../../support/crash-steps.ts'
import { describeWithKafka, kafkaBrokers, useFixture } from '../../support/fixture.ts'
import { oneKafkaClient } from '../../support/kafka-clients.ts'
import { createTopic, readTopic } from '../../support/servers/topic-reader.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()

it('has the same steps as the crash table of the documentation', async () => {
  const page = await readFile(new URL('../../../docs/architecture.md', import.meta.url), 'utf8')
  const [, table] = /\| the process dies \|.*\n\|-.*\n((?:\|.*\n)+)/.exec(page)!
  const documented = table!
    .trim()
    .split('\n')
    .map((row) => row.split('|')[1]!.trim())
  expect(documented).toEqual(Object.keys(CRASH_STEPS))
})

describeWithKafka('a process killed', () => {
  beforeAll(async () => {
    await fixture.sql`create table journal (run text, event_id uuid)`
  })

  it.concurrent.each(Object.entries(CRASH_STEPS))(
    '%s',
    { timeout: 120_000 },
    async (name, step) => {
      const topic = uniqueName('step')
      const table = topic.replaceAll('-', '_')
      await createTopic(kafkaBrokers(), topic, 1)
      // Not the fixture's: those are stopped when any of the tests that run side by side ends.
      const outbox = createOutbox({
        db: fixture.db,
        publisher: oneKafkaClient.publisher(kafkaBrokers()),
        table,
        poller: true,
        pollInterval: '100ms',
      })
      await outbox.migrate()
      const end = await runProcess('dies-at-step', [
        fixture.url,
        kafkaBrokers()[0]!,
        topic,
        table,
        name,
        oneKafkaClient.name,
      ])
      expect(end).toMatchObject({ signal: 'SIGKILL', output: '' })

      await outbox.start()
      await waitUntil(
        async () => {
          const left = await fixture.sql`
          select 1 from ${fixture.sql(table)} where status = 'pending' limit 1`
          return left.length === 0
        },
        { message: 'the other instance has delivered what was left', timeoutMs: 60_000 },
      )
      await outbox.stop()
      const committed = (
        await fixture.sql`select event_id from journal where run = ${table} order by event_id`
      ).map((row) => row['event_id'] as string)
      const reader = await readTopic(kafkaBrokers(), topic)
      const arrived = (await reader.readToEnd()).map(({ headers }) => headers['event-id']!)
      await reader.stop()
      expect(committed.length > 0).toBe(step.committed)
      // Ids ascend in the order of emit: first arrivals in that order, and nothing else.
      expect([...new Set(arrived)]).toEqual(committed)
      expect(arrived).toHaveLength(committed.length * step.arrivals)
    },
  )
})
