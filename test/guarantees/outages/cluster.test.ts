// Kafka as it is run: three brokers, every topic on all of them, an ack when two have the message. Whatever happens to
// one of them, each committed event arrives in the order of its aggregate, and none pays with an attempt. With two of
// them gone, events wait.
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { Publisher, PublishResult } from '../../../src/index.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { describeWithOwnKafka, useFixture } from '../../support/fixture.ts'
import { kafkaClients } from '../../support/kafka-clients.ts'
import { firstArrivals, type Load, startLoad } from '../../support/load.ts'
import { type KafkaCluster, startKafkaCluster } from '../../support/servers/kafka-cluster.ts'
import type { KafkaNode } from '../../support/servers/kafka-node.ts'
import { createTopic, readTopic, type TopicMessage } from '../../support/servers/topic-reader.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

/** Short enough for a broker that is gone to be noticed within a test. */
const PATIENCE = { connectMs: 1_000, requestMs: 3_000 }

const TIMES = {
  threshold: '7s',
  publishTimeout: '3s',
  poller: true,
  pollInterval: '500ms',
} as const

/** A broker takes ten seconds to start where other work goes on. */
const TEST_MS = 240_000
const DRAIN_MS = 90_000

const fixture = useFixture()

describeWithOwnKafka('a cluster of three brokers', () => {
  let cluster: KafkaCluster
  const loads: Load[] = []
  beforeAll(async () => {
    // Otherwise a send would bring back a topic that the test deletes.
    cluster = await startKafkaCluster({ settings: { 'auto.create.topics.enable': 'false' } })
  }, TEST_MS)
  // Before the outboxes stop: a test that failed may leave brokers frozen or dead.
  afterEach(async () => {
    for (const node of cluster.nodes) node.resume()
    await Promise.all([
      ...loads.splice(0).map((load) => load.stop()),
      ...cluster.nodes.map((node) => node.start()),
    ])
    await cluster.waitUntilInSync()
  }, TEST_MS)
  afterAll(() => cluster?.stop())

  describe.each(kafkaClients)('with $title', ({ publisher }) => {
    /** Two instances of a service on one table, and how many of their sends are under way. */
    async function startService(topic: string, metadataMs = 300_000) {
      let underWay = 0
      const counted = (real: Publisher): Publisher => ({
        ...real,
        async publish(...call) {
          underWay += 1
          try {
            return await real.publish(...call)
          } finally {
            underWay -= 1
          }
        },
      })
      const outboxes = [0, 1].map(() =>
        fixture.outbox({
          publisher: counted(publisher(cluster.brokers, { ...PATIENCE, metadataMs })),
          topic,
          ...TIMES,
        }),
      )
      await Promise.all(outboxes.map((outbox) => outbox.start()))
      return {
        events: outboxes.map((outbox) => outbox.events),
        isSending: () => underWay > 0,
        load(name: string): Load {
          const load = startLoad(outboxes, name)
          loads.push(load)
          return load
        },
      }
    }

    /** With one partition, so that one broker leads all of it, or with several. */
    async function makeTopic(partitions: number): Promise<string> {
      const topic = uniqueName('cluster')
      await cluster.createTopic(topic, { partitions, minInsyncReplicas: 2 })
      return topic
    }

    it(
      'loses nothing and keeps the order while its brokers are restarted in turn',
      async () => {
        const topic = await makeTopic(3)
        const service = await startService(topic)
        const load = service.load('order')
        await load.commits(20)
        for (const node of cluster.nodes) {
          await node.stop()
          await load.commits(20)
          await node.start()
          await cluster.waitUntilInSync()
        }
        await load.commits(20)
        expect(firstArrivals(await arrivalsOf(topic, load))).toEqual(load.committed)
      },
      TEST_MS,
    )

    it(
      'loses nothing and keeps the order when a leader is killed in the middle of a send',
      async () => {
        const topic = await makeTopic(1)
        const service = await startService(topic)
        const load = service.load('order')
        for (let kills = 0; kills < 2; kills += 1) {
          await load.commits(20)
          const leader = await cluster.findLeader(topic)
          await waitUntil(service.isSending, { message: 'a send is under way' })
          await leader.kill()
          await waitUntil(
            async () => !(await cluster.fetchInSync(topic)).flat().includes(leader.id),
            {
              message: 'another broker leads',
            },
          )
          await load.commits(20)
          await leader.start()
          await cluster.waitUntilInSync()
        }
        expect(firstArrivals(await arrivalsOf(topic, load))).toEqual(load.committed)
      },
      TEST_MS,
    )

    it(
      'sends nothing twice that other brokers have acked while one is frozen in the middle of a send',
      async () => {
        // One replica of each partition: the brokers that are well wait for no other.
        const topic = uniqueName('frozen')
        const settings = { 'min.insync.replicas': '1' }
        await createTopic(cluster.directBrokers, topic, 3, { replicas: 1, settings })
        // Otherwise it has no leader in tests that stop a broker.
        onTestFinished(() => deleteTopic(topic))
        const leaders = await Promise.all([0, 1, 2].map((n) => cluster.findLeader(topic, n)))
        expect(new Set(leaders).size).toBe(3)
        const open = publisher(cluster.brokers, PATIENCE)
        const keys = Array.from({ length: 30 }, (_, n) => `order-${n}`)
        const eventsOf = () => keys.map((aggregateId) => outboxEvent({ topic, aggregateId }))
        const first = await open.publish(eventsOf())

        const [frozen] = cluster.nodes as [KafkaNode]
        const isFrozen = (n: number) => leaders[partitionOf(first[n])] === frozen
        const events = eventsOf()
        frozen.pause()
        const results = await open.publish(events)
        expect(results.map(({ ok }) => ok)).toEqual(events.map((_, n) => !isFrozen(n)))
        expect(results.filter(({ ok }) => !ok)).toContainEqual(
          expect.objectContaining({ kind: 'transient', blames: 'broker' }),
        )
        frozen.resume()
        const waiting = events.filter((_, n) => isFrozen(n))
        await waitUntil(async () => (await open.publish(waiting)).every(({ ok }) => ok), {
          message: 'the events for the frozen broker were sent',
        })
        await open.disconnect?.()

        const arrived = (await messagesOf(topic)).map(({ headers }) => headers['event-id'])
        const copies = events.map(({ id }) => arrived.filter((one) => one === id).length)
        expect(copies.filter((_, n) => !isFrozen(n))).toEqual(
          events.filter((_, n) => !isFrozen(n)).map(() => 1),
        )
        expect(Math.min(...copies)).toBe(1)
      },
      TEST_MS,
    )

    it(
      'waits below min.insync.replicas without using attempts, and recovers by itself',
      async () => {
        const topic = await makeTopic(3)
        const service = await startService(topic)
        const load = service.load('order')
        await load.commits(20)
        const [first, second] = cluster.nodes as [KafkaNode, KafkaNode]
        // In order, so that the quorum still takes note of the second: one replica is left, where two have to be.
        await first.stop()
        await second.stop()
        const inSync = await cluster.fetchInSync(topic)
        expect(inSync.map((ids) => ids.length)).toEqual([1, 1, 1])
        const refused = nextEvent(service.events[0]!, 'circuit:open', ({ error }) =>
          error.message.includes('NOT_ENOUGH_REPLICAS'),
        )
        await load.commits(40)
        expect(await refused).toMatchObject({ topic })
        expect(await countRows(`status = 'pending'`)).toBeGreaterThan(0)
        expect(await countRows(`attempts > 0 or status = 'dead_letter'`)).toBe(0)

        await second.start()
        expect(firstArrivals(await arrivalsOf(topic, load))).toEqual(load.committed)
      },
      TEST_MS,
    )

    it(
      'waits without a quorum of brokers, and recovers by itself',
      async () => {
        const topic = await makeTopic(3)
        const service = await startService(topic)
        const load = service.load('order')
        await load.commits(20)
        const opened = nextEvent(service.events[0]!, 'circuit:open')
        // At once: the last broker never learns that the others are gone. It writes, and waits for them.
        const [first, second] = cluster.nodes as [KafkaNode, KafkaNode]
        await Promise.all([first.kill(), second.kill()])
        await opened
        await load.commits(40)
        expect(await countRows(`status = 'pending'`)).toBeGreaterThan(0)
        expect(await countRows(`attempts > 0 or status = 'dead_letter'`)).toBe(0)

        await second.start()
        expect(firstArrivals(await arrivalsOf(topic, load))).toEqual(load.committed)
      },
      TEST_MS,
    )

    // The partition of a key follows from the number of partitions, so most keys move. Each instance learns of the new
    // partitions by itself: until all have, the events of one aggregate go to its old or to its new partition, depending
    // on which instance sends them. Each partition has them in order. A consumer that reads both may see a later event
    // first: between partitions Kafka knows no order.
    it(
      'delivers everything while partitions are added, in order within each partition',
      async () => {
        const topic = await makeTopic(2)
        const service = await startService(topic, 1_000)
        const load = service.load('order')
        await load.commits(20)
        const found = service.events.map((events) => nextEvent(events, 'event:published', isOnNew))
        await cluster.ask((admin) =>
          admin.createPartitions({ topicPartitions: [{ topic, count: 6 }] }),
        )
        await Promise.all(found)
        await load.commits(20)
        const messages = await arrivalsOf(topic, load)
        expect(sortedArrivals(messages)).toEqual(load.committed)
        expect(disordered(messages)).toEqual([])
        expect(firstArrivals(messages, placeOf).size).toBeGreaterThan(load.committed.size)
      },
      TEST_MS,
    )

    /** The load that began between the two, and what the new topic has of it. */
    async function makeAgain(partitions: number) {
      const topic = await makeTopic(3)
      const service = await startService(topic)
      const before = service.load('before')
      await before.commits(20)
      await before.stop()
      await allPublished()
      await deleteTopic(topic)
      const opened = nextEvent(service.events[0]!, 'circuit:open')
      const load = service.load('after')
      await opened
      await load.commits(10)
      await cluster.createTopic(topic, { partitions })
      await load.commits(20)
      return { load, messages: await arrivalsOf(topic, load) }
    }

    it(
      'delivers what is emitted after its topic was deleted once the topic is made again',
      async () => {
        const { load, messages } = await makeAgain(3)
        expect(firstArrivals(messages)).toEqual(load.committed)
      },
      TEST_MS,
    )

    // What the instances know of the old topic is wrong for the new one, until each has learnt of it. As with added
    // partitions, the events of one aggregate may be in two of them for a while.
    it(
      'delivers to a topic that was made again with fewer partitions, in order within each',
      async () => {
        const { load, messages } = await makeAgain(2)
        expect(sortedArrivals(messages)).toEqual(load.committed)
        expect(disordered(messages)).toEqual([])
      },
      TEST_MS,
    )
  })

  /** One broker that has dropped the topic is enough: without it there is no ack from all replicas. */
  async function deleteTopic(topic: string): Promise<void> {
    await cluster.ask((admin) => admin.deleteTopics({ topics: [topic] }))
    await waitUntil(
      async () => !(await cluster.ask((admin) => admin.listTopics())).includes(topic),
      { message: `${topic} is gone` },
    )
  }

  /** Everything in the topic, once all that was committed is published; nothing has paid for it. */
  async function arrivalsOf(topic: string, load: Load): Promise<readonly TopicMessage[]> {
    await load.stop()
    await allPublished()
    expect(await countRows(`attempts > 0 or status <> 'published'`)).toBe(0)
    return await messagesOf(topic)
  }

  async function messagesOf(topic: string): Promise<readonly TopicMessage[]> {
    const reader = await readTopic(cluster.directBrokers, topic)
    const messages = await reader.readToEnd()
    await reader.stop()
    return messages
  }
})

async function allPublished(): Promise<void> {
  await waitUntil(async () => (await countRows(`status = 'pending'`)) === 0, {
    message: 'nothing is pending',
    timeoutMs: DRAIN_MS,
  })
}

async function countRows(condition: string): Promise<number> {
  const [row] = await fixture.sql.unsafe(`select count(*)::int as n from outbox where ${condition}`)
  return row?.['n'] as number
}

function partitionOf(result: PublishResult | undefined): number {
  if (!result?.ok || result.partition === null) throw new Error('no partition is known')
  return result.partition
}

function isOnNew({ partition }: { partition: number | null }): boolean {
  return partition !== null && partition > 1
}

/** For what may arrive in any order across partitions. */
function sortedArrivals(messages: readonly TopicMessage[]): Map<string, number[]> {
  return new Map([...firstArrivals(messages)].map(([key, numbers]) => [key, ascending(numbers)]))
}

/** The aggregates whose events are not in order within a partition. */
function disordered(messages: readonly TopicMessage[]): [string, number[]][] {
  return [...firstArrivals(messages, placeOf)].filter(
    ([, numbers]) => String(numbers) !== String(ascending(numbers)),
  )
}

function placeOf({ key, partition }: TopicMessage): string {
  return `${key} on ${partition}`
}

function ascending(numbers: readonly number[]): number[] {
  return numbers.toSorted((a, b) => a - b)
}
