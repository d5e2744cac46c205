// What a publisher for Kafka has to do on a real broker, whichever client is behind it.
import { once } from 'node:events'
import { createServer as createWebServer } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { describeWithKafka, describeWithOwnKafka, kafkaBrokers, quietKafka } from '../fixture.ts'
import { outboxEvent } from '../doubles/sample-events.ts'
import type { KafkaClient } from '../kafka-clients.ts'
import { uniqueName } from '../doubles/unique-name.ts'
import { startKafka } from '../servers/kafka-server.ts'
import { startProxy } from '../servers/tcp-proxy.ts'
import { createTopic, readTopic } from '../servers/topic-reader.ts'
import { describePublisher } from './publisher-conformance.ts'

export async function openTopic(settings: Record<string, string> = {}) {
  const topic = uniqueName('topic')
  await createTopic(kafkaBrokers(), topic, 3, { replicas: 1, settings })
  return topic
}

export async function readAll(topic: string) {
  const reader = await readTopic(kafkaBrokers(), topic)
  try {
    return await reader.readToEnd()
  } finally {
    await reader.stop()
  }
}

/** Larger than a broker takes by default, whatever else is in its batch. */
const TOO_LARGE = { payload: JSON.stringify('x'.repeat(1_100_000)) }
const tooLarge = (topic: string) => outboxEvent({ topic, ...TOO_LARGE })

function openWebServer(): Promise<string> {
  return listen(createWebServer((_, response) => response.end()))
}

function openClosingServer(): Promise<string> {
  return listen(createServer((socket) => socket.end().resume()))
}

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** What has to happen while the client still tries: kafkajs gives up after some nine seconds. */
async function whileItTries<T>(happening: Promise<T>): Promise<T> {
  const begunAt = performance.now()
  try {
    return await happening
  } finally {
    expect(performance.now() - begunAt).toBeLessThan(7_000)
  }
}

export function describeKafkaClient(name: string, open: KafkaClient['publisher']): void {
  describeWithKafka(name, () => {
    describePublisher(name, async () => ({
      publisher: open(kafkaBrokers()),
      openTopic,
      arrivals: async (topic) =>
        (await readAll(topic)).map(({ key, value, headers }) => {
          return { key: key ?? '', payload: JSON.parse(value ?? 'null'), headers }
        }),
      poison: (event) => ({ ...event, ...TOO_LARGE }),
    }))

    it('tells the partition and offset under which each event is stored', async () => {
      const publisher = open(kafkaBrokers())
      const topics = [await openTopic(), await openTopic()]
      const events = Array.from({ length: 60 }, (_, n) => {
        return outboxEvent({ topic: topics[n % 2]!, aggregateId: `order-${n % 7}` })
      })
      const results = await publisher.publish(events)
      await publisher.disconnect?.()
      for (const topic of topics) {
        const stored = new Map(
          (await readAll(topic)).map((one) => [one.headers['event-id'], one] as const),
        )
        for (const [n, event] of events.entries()) {
          if (event.topic !== topic) continue
          const { partition, offset } = stored.get(event.id)!
          expect(results[n]).toMatchObject({ ok: true, partition, offset })
        }
      }
    })

    it('gives a message the time at which its event was leased, by the clock of the database', async () => {
      const publisher = open(kafkaBrokers())
      const topic = await openTopic()
      const leasedAt = new Date(Date.now() - 60_000)
      await publisher.publish([outboxEvent({ topic, leasedAt })])
      await publisher.disconnect?.()
      const [stored] = await readAll(topic)
      expect(stored!.timestamp).toBe(String(leasedAt.getTime()))
    })

    it('lets a topic wait whose broker refuses the time, and names the clocks', async () => {
      const publisher = open(kafkaBrokers(), { retries: 0 })
      // The default from Kafka 4 on.
      const topic = await openTopic({ 'message.timestamp.after.max.ms': '3600000' })
      const leasedAt = new Date(Date.now() + 2 * 3_600_000)
      const results = await publisher.publish([1, 2].map(() => outboxEvent({ topic, leasedAt })))
      await publisher.disconnect?.()
      for (const result of results) {
        expect(result).toMatchObject({ kind: 'transient', blames: 'topic' })
        expect(result).toMatchObject({ error: { message: expect.stringMatching(/the clocks of/) } })
      }
    })

    it('makes a message that is too large permanent, in the middle of others and alone', async () => {
      const publisher = open(kafkaBrokers())
      const topic = await openTopic()
      const [alone] = await publisher.publish([tooLarge(topic)])
      await publisher.disconnect?.()
      expect(alone).toMatchObject({
        kind: 'permanent',
        error: { message: expect.stringMatching(/MESSAGE_TOO_LARGE/) },
      })
    })

    it('goes on behind an event that failed for good, unless it is told to hold', async () => {
      const publisher = open(kafkaBrokers())
      const topic = await openTopic()
      const bad = tooLarge(topic)
      const follower = outboxEvent({ topic, aggregateId: bad.aggregateId })
      const results = await publisher.publish([bad, follower])
      await publisher.disconnect?.()
      expect(results).toMatchObject([{ ok: false, kind: 'permanent' }, { ok: true }])
      expect((await readAll(topic)).map(({ headers }) => headers['event-id'])).toEqual([
        follower.id,
      ])
    })

    it('splits a batch that a broker would refuse as a whole', async () => {
      const publisher = open(kafkaBrokers())
      const topic = await openTopic()
      const payload = JSON.stringify('x'.repeat(100_000))
      const events = Array.from({ length: 30 }, () =>
        outboxEvent({ topic, payload, aggregateId: '1' }),
      )
      const results = await publisher.publish(events)
      await publisher.disconnect?.()
      expect(results.every((result) => result.ok)).toBe(true)
      const ids = (await readAll(topic)).map(({ headers }) => headers['event-id'])
      expect(ids).toEqual(events.map(({ id }) => id))
    })

    it('makes an event for an impossible topic permanent and delivers its neighbours', async () => {
      const publisher = open(kafkaBrokers())
      const topic = await openTopic()
      const results = await publisher.publish([
        outboxEvent({ topic }),
        outboxEvent({ topic: 'no topic has blanks' }),
        outboxEvent({ topic }),
      ])
      await publisher.disconnect?.()
      expect(results).toMatchObject([{ ok: true }, { kind: 'permanent' }, { ok: true }])
      expect(await readAll(topic)).toHaveLength(2)
    })

    it('reports an unreachable broker as transient and keeps nothing of it', async () => {
      const publisher = open(['127.0.0.1:1'], { retries: 0 })
      const [result] = await publisher.publish([outboxEvent()])
      expect(result).toMatchObject({ kind: 'transient', blames: 'broker' })
      expect(result).toMatchObject({ error: { message: expect.stringMatching(/ECONNREFUSED/) } })
      await publisher.disconnect?.()
    })

    it('connects again after a first try that failed', async () => {
      const [broker] = kafkaBrokers()
      const proxy = await startProxy({ port: Number(broker!.split(':')[1]) })
      await proxy.refuse()
      const publisher = open([`127.0.0.1:${proxy.port}`], { retries: 0 })
      const topic = await openTopic()
      expect(await publisher.publish([outboxEvent({ topic })])).toMatchObject([
        { kind: 'transient' },
      ])
      await proxy.accept()
      expect(await publisher.publish([outboxEvent({ topic })])).toMatchObject([{ ok: true }])
      await publisher.disconnect?.()
      await proxy.stop()
    })
  })

  describeWithKafka(`${name}: a message that one partition refuses`, () => {
    // A topic that takes less than the publisher is told: the refusal comes from the broker, per partition.
    async function openSmallTopic() {
      const topic = uniqueName('small')
      const admin = quietKafka(kafkaBrokers()).admin()
      await admin.connect()
      const configEntries = [{ name: 'max.message.bytes', value: '20000' }]
      await admin.createTopics({
        topics: [{ topic, numPartitions: 3, replicationFactor: 1, configEntries }],
        waitForLeaders: true,
      })
      await admin.disconnect()
      return topic
    }

    it('is found without sending its neighbours twice, or out of order', async () => {
      const publisher = open(kafkaBrokers())
      const topic = await openSmallTopic()
      const bad = outboxEvent({ topic, payload: JSON.stringify('x'.repeat(30_000)) })
      const events = Array.from({ length: 33 }, (_, n) => {
        return n === 16 ? bad : outboxEvent({ topic, aggregateId: `k${n % 8}`, payload: String(n) })
      })
      const results = await publisher.publish(events)
      await publisher.disconnect?.()
      expect(results[16]).toMatchObject({ ok: false, kind: 'permanent' })
      expect(results.filter((result) => result.ok)).toHaveLength(32)
      const stored = await readAll(topic)
      expect(stored).toHaveLength(32)
      for (let partition = 0; partition < 3; partition += 1) {
        const values = stored.filter((one) => one.partition === partition).map((one) => +one.value!)
        expect(values).toEqual(values.toSorted((a, b) => a - b))
      }
    })

    it('sends the events of an aggregate that change topics in their order', async () => {
      const publisher = open(kafkaBrokers())
      const [good, small] = [await openTopic(), await openSmallTopic()]
      const aggregateId = 'one'
      const results = await publisher.publish([
        outboxEvent({ aggregateId, topic: good, payload: '1' }),
        outboxEvent({ aggregateId, topic: small, payload: '2' }),
        outboxEvent({ aggregateId, topic: good, payload: '3' }),
      ])
      await publisher.disconnect?.()
      expect(results.every((result) => result.ok)).toBe(true)
      expect((await readAll(good)).map(({ value }) => value)).toEqual(['1', '3'])
    })
  })

  describe(`${name}: a wrong address`, () => {
    it.each([
      ['no-such-host.invalid:9092', /(ENOTFOUND|EAI_AGAIN) no-such-host\.invalid/],
      ['127.0.0.1:1', /ECONNREFUSED 127\.0\.0\.1:1/],
    ])(
      'is named while the client still tries: %s',
      async (broker, message) => {
        const publisher = open([broker])
        await expect(whileItTries(publisher.connect!())).rejects.toThrow(message)
        const [result] = await whileItTries(publisher.publish([outboxEvent()]))
        expect(result).toMatchObject({ ok: false, kind: 'transient', blames: 'broker' })
        expect((result as { error: Error }).error.message).toMatch(message)
        // Not awaited: kafkajs can only be closed when it has given up, ten seconds later.
        void publisher.disconnect!()
      },
      30_000,
    )

    it.each([
      ["Postgres's", async () => new URL(inject('directDatabaseUrl')).host],
      ["a web server's", openWebServer],
      ["a server's that closes every connection", openClosingServer],
    ])(
      'is named with its port when it is %s',
      async (_, findAddress) => {
        const address = await findAddress()
        const publisher = open([address])
        await expect(whileItTries(publisher.connect!())).rejects.toThrow(address)
        const [result] = await whileItTries(publisher.publish([outboxEvent()]))
        expect(result).toMatchObject({ ok: false, kind: 'transient', blames: 'broker' })
        expect((result as { error: Error }).error.message).toContain(address)
        void publisher.disconnect!()
      },
      30_000,
    )
  })

  describeWithKafka(`${name}: several addresses`, () => {
    it('does not blame the first one while the second takes its time', async () => {
      const [broker] = kafkaBrokers()
      const slow = await startProxy({ port: Number(broker!.split(':')[1]) })
      slow.delay(800)
      const publisher = open(['127.0.0.1:1', `127.0.0.1:${slow.port}`])
      const topic = await openTopic()
      expect(await publisher.publish([outboxEvent({ topic })])).toMatchObject([{ ok: true }])
      await publisher.disconnect?.()
      await slow.stop()
    })
  })

  describeWithOwnKafka(`${name}: a topic that is not there yet`, () => {
    it('is transient for its own events, and no trouble for the others', async () => {
      const kafka = await startKafka({ settings: { 'auto.create.topics.enable': 'false' } })
      await createTopic(kafka.brokers, 'there')
      const publisher = open(kafka.brokers, { retries: 0 })
      const missing = [1, 2].map((n) => outboxEvent({ topic: 'missing', payload: String(n) }))
      const there = [1, 2].map((n) => outboxEvent({ topic: 'there', payload: String(n) }))
      const batch = [missing[0]!, there[0]!, missing[1]!, there[1]!]
      const results = await publisher.publish(batch)
      expect(results).toMatchObject([
        { kind: 'transient', blames: 'topic' },
        { ok: true },
        { ok: false },
        { ok: true },
      ])
      // An aggregate goes on elsewhere: no consumer sees an order across two topics.
      const ofOne = ['missing', 'there'].map((topic, lane) => {
        return outboxEvent({ topic, lane, aggregateId: 'one' })
      })
      expect(await publisher.publish(ofOne)).toMatchObject([{ kind: 'transient' }, { ok: true }])
      // While kafkajs asks for the missing topic it fails sends to others with the same words.
      for (let n = 0; n < 10; n += 1) {
        const sends = [missing, there, there, missing, there].map((one) => publisher.publish(one))
        const verdicts = (await Promise.all(sends)).map(([result]) => result?.ok)
        expect(verdicts).toEqual([false, true, true, false, true])
      }
      await createTopic(kafka.brokers, 'missing')
      expect(await publisher.publish(missing)).toMatchObject([{ ok: true }, { ok: true }])
      await publisher.disconnect?.()
      const reader = await readTopic(kafka.brokers, 'there')
      expect(await reader.readToEnd()).toHaveLength(63)
      await reader.stop()
      await kafka.stop()
    })
  })
}
