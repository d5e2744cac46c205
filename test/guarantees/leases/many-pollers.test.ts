// Several instances poll at once: no row is taken twice, and nobody blocks.
import { expect, it } from 'vitest'
import type { Publisher } from '../../../src/index.ts'
import { connect } from '../../support/servers/database.ts'
import { describeWithKafka, kafkaBrokers, useFixture } from '../../support/fixture.ts'
import { kafkaClients } from '../../support/kafka-clients.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { createTopic, readTopic } from '../../support/servers/topic-reader.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { defer } from '../../support/timing/deferred.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
const COUNT = 10_000

async function saveBacklog(topic: string) {
  const saver = fixture.handling({})
  for (let n = 0; n < COUNT; n += 1_000) {
    await saver.withOutbox(async (_, emit) => {
      const events = Array.from({ length: 1_000 }, (__, i) => {
        return newEvent({ aggregateId: `order-${(n + i) % 500}`, payload: n + i, topic })
      })
      emit(events)
    })
  }
}

describeWithKafka('two pollers and 10,000 rows', () => {
  it.each(kafkaClients)(
    'claims each row once, and delivers each once and in order, with $title',
    async ({ publisher: open }) => {
      const topic = uniqueName('pollers')
      await createTopic(kafkaBrokers(), topic)
      await saveBacklog(topic)

      const claimed: string[] = []
      const workers = new Set<string>()
      const connections = [connect(fixture.url), connect(fixture.url)]
      const bothClaimed = defer()
      const outboxes = connections.map(({ db }, n) => {
        const real = open(kafkaBrokers())
        const publisher: Publisher = {
          ...real,
          // Neither goes on before the other has its share: the second may begin late.
          async publish(...call) {
            await bothClaimed.promise
            return await real.publish(...call)
          },
        }
        const outbox = fixture.outbox({
          db,
          publisher,
          poller: true,
          threshold: '30s',
          workerId: `worker ${n}`,
        })
        outbox.events.on('batch:claimed', ({ events }) => {
          claimed.push(...events.map(({ id }) => id))
          workers.add(`worker ${n}`)
          if (workers.size === 2) bothClaimed.resolve()
        })
        return outbox
      })
      await Promise.all(outboxes.map((outbox) => outbox.start()))
      await waitUntil(
        async () => {
          const [left] = await fixture.sql`select 1 from outbox where status = 'pending' limit 1`
          return left === undefined
        },
        { message: 'the backlog is drained', timeoutMs: 50_000 },
      )
      await Promise.all(outboxes.map((outbox) => outbox.stop()))
      await Promise.all(connections.map((connection) => connection.close()))

      expect(claimed).toHaveLength(COUNT)
      expect(new Set(claimed).size).toBe(COUNT)
      expect(workers.size).toBe(2)
      const reader = await readTopic(kafkaBrokers(), topic)
      const messages = await reader.readToEnd()
      await reader.stop()
      expect(messages).toHaveLength(COUNT)
      expect(new Set(messages.map(({ value }) => value)).size).toBe(COUNT)
      expect(outOfOrder(messages)).toEqual([])
    },
  )
})

function outOfOrder(messages: readonly { key: string | null; value: string | null }[]) {
  const last = new Map<string | null, number>()
  return messages.filter(({ key, value }) => {
    const before = last.get(key) ?? -1
    last.set(key, Number(value))
    return Number(value) <= before
  })
}
