// A process that dies holding rows loses them to the next one when their lease ends; nothing else
// happens, and nobody has to clean up.
import { expect, it } from 'vitest'
import { runProcess } from '../../support/servers/child-process.ts'
import { describeWithKafka, kafkaBrokers, useFixture } from '../../support/fixture.ts'
import { kafkaClients } from '../../support/kafka-clients.ts'
import { createTopic, readTopic } from '../../support/servers/topic-reader.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { nextEvent } from '../../support/timing/wait-until.ts'

const fixture = useFixture()

describeWithKafka('a process killed after COMMIT', () => {
  it.each(kafkaClients)(
    'has its event delivered by another instance, once, after the threshold, with $title',
    async ({ name, publisher }) => {
      const topic = uniqueName('killed')
      await createTopic(kafkaBrokers(), topic)
      const end = await runProcess('dies-after-commit', [
        fixture.url,
        kafkaBrokers()[0]!,
        topic,
        '5s',
        name,
      ])
      expect(end).toMatchObject({ signal: 'SIGKILL', output: '' })
      expect(await fixture.rows()).toMatchObject([
        { status: 'pending', available: false, worker_id: 'the one that dies' },
      ])

      const outbox = fixture.outbox({
        publisher: publisher(kafkaBrokers()),
        poller: true,
        pollInterval: '50ms',
        workerId: 'the one that lives',
      })
      const published = nextEvent(outbox.events, 'event:published')
      await outbox.start()
      expect(await published).toMatchObject({ path: 'fallback' })
      expect(await fixture.rows()).toMatchObject([
        { status: 'published', worker_id: 'the one that lives' },
      ])
      const [row] = await fixture.sql`
      select last_attempt_at - created_at >= interval '5 s' as after_threshold from outbox`
      expect(row?.['after_threshold']).toBe(true)

      const reader = await readTopic(kafkaBrokers(), topic)
      expect(await reader.readToEnd()).toHaveLength(1)
      await reader.stop()
    },
  )
})

describeWithKafka('a process killed after the ack, before its record', () => {
  it.each(kafkaClients)(
    'has its event sent again by another instance, under the same event id, with $title',
    async ({ name, publisher: open }) => {
      const topic = uniqueName('unrecorded')
      await createTopic(kafkaBrokers(), topic)
      const end = await runProcess('dies-after-ack', [fixture.url, kafkaBrokers()[0]!, topic, name])
      expect(end).toMatchObject({ signal: 'SIGKILL', output: '' })

      const publisher = open(kafkaBrokers())
      const outbox = fixture.outbox({ publisher, poller: true, pollInterval: '50ms' })
      const published = nextEvent(outbox.events, 'event:published')
      await outbox.start()
      const { event } = await published
      const reader = await readTopic(kafkaBrokers(), topic)
      const ids = (await reader.readToEnd()).map(({ headers }) => headers['event-id'])
      await reader.stop()
      expect(ids).toEqual([event.id, event.id])
    },
  )
})
