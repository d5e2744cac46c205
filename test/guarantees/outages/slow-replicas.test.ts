// "Its topic waits; no other does", on a real cluster. A topic that needs all three replicas, and one that needs two, both
// led by the same broker. When another broker dies, requests of the first topic wait in the leader until they time out,
// each on a connection on which nothing else is answered meanwhile.
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Publisher } from '../../../src/index.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { describeWithOwnKafka, useFixture } from '../../support/fixture.ts'
import { kafkaClients } from '../../support/kafka-clients.ts'
import { type KafkaCluster, startKafkaCluster } from '../../support/servers/kafka-cluster.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const TEST_MS = 120_000
const fixture = useFixture()

describeWithOwnKafka('a topic with too few replicas', () => {
  let cluster: KafkaCluster
  beforeAll(async () => {
    cluster = await startKafkaCluster({ settings: { 'auto.create.topics.enable': 'false' } })
  }, TEST_MS)
  afterAll(() => cluster?.stop())

  /** One partition, led by the first broker. */
  async function makeTopic(minInsyncReplicas: number): Promise<string> {
    const topic = uniqueName('replicas')
    await cluster.createTopic(topic, { partitions: 1, minInsyncReplicas, ledBy: 1 })
    await cluster.waitUntilInSync()
    return topic
  }

  it.each(kafkaClients)(
    'delays no other topic of $title, whatever its requests wait for',
    async (client) => {
      const [needsAll, needsTwo] = [await makeTopic(3), await makeTopic(2)]
      const real = client.publisher(cluster.brokers, { requestMs: 60_000 })
      let hanging = 0
      const publisher: Publisher = {
        ...real,
        async publish(events, rules) {
          const hangs = events.some(({ topic }) => topic === needsAll)
          hanging += Number(hangs)
          const results = await real.publish(events, rules)
          hanging -= Number(hangs)
          return results
        },
      }
      const outbox = fixture.outbox({ publisher, poller: true, pollInterval: '500ms' })
      const published: string[] = []
      outbox.events.on('event:published', ({ topic }) => void published.push(topic))
      const count = (topic: string) => published.filter((one) => one === topic).length
      const commit = async (topic: string, aggregates: number) => {
        for (let n = 0; n < aggregates; n += 1) {
          await outbox.withOutbox((_, emit) => emit(newEvent({ topic, aggregateId: String(n) })))
        }
      }
      await outbox.start()
      // Both clients know both topics, and their connections are open.
      await commit(needsAll, 1)
      await commit(needsTwo, 1)
      await waitUntil(() => published.length === 2, { message: 'both topics are in use' })

      const third = cluster.nodes[2]!
      await third.kill()
      try {
        await commit(needsAll, 3)
        await waitUntil(() => hanging > 0, { message: 'a send hangs' })
        // Two events of each aggregate: the second may only go when the first is acknowledged.
        await commit(needsTwo, 3)
        await commit(needsTwo, 3)
        await waitUntil(() => count(needsTwo) === 7, {
          message: () => `all seven of the other topic are published, ${count(needsTwo)} are`,
          timeoutMs: 30_000,
        })
        expect(hanging).toBeGreaterThan(0)
        expect(count(needsAll)).toBe(1)
      } finally {
        await third.start()
      }
      await waitUntil(() => count(needsAll) === 4, { message: 'it goes on with all replicas' })
      await outbox.stop()
    },
    TEST_MS,
  )
})
