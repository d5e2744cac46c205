// The test servers themselves: if these promises do not hold, no other test proves anything.
import { once } from 'node:events'
import { connect as connectSocket } from 'node:net'
import { Kafka, logLevel } from 'kafkajs'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import {
  connect,
  createDatabase,
  type TestConnection,
  type TestDatabase,
} from '../support/servers/database.ts'
import { findFreePort } from '../support/servers/free-port.ts'
import { startKafka } from '../support/servers/kafka-server.ts'
import { startPostgres } from '../support/servers/postgres-server.ts'
import { startProxy, type TcpProxy } from '../support/servers/tcp-proxy.ts'
import { createTopic, readTopic } from '../support/servers/topic-reader.ts'
import { uniqueName } from '../support/doubles/unique-name.ts'
import { waitUntil } from '../support/timing/wait-until.ts'

it('never gives a port twice, also not to calls that run at once', async () => {
  const ports = await Promise.all(Array.from({ length: 500 }, findFreePort))
  expect(new Set(ports).size).toBe(500)
})

describe('a Postgres of its own', () => {
  it('keeps a committed row through a crash', async () => {
    const server = await startPostgres({ settings: { log_statement: 'all' } })
    try {
      const before = connect(server.url, { max: 1 })
      await before.client`create table kept (id int primary key)`
      await before.client`insert into kept values (1)`
      const crashed = server.pid
      await server.kill()
      await expect(before.client`select 1`).rejects.toMatchObject({
        code: expect.stringMatching(/CONNECTION_CLOSED|ECONNREFUSED/) as string,
      })
      await before.close()

      await server.start()
      const after = connect(server.url, { max: 1 })
      expect(await after.client`select id from kept`).toEqual([{ id: 1 }])
      expect(await after.client`show log_statement`).toEqual([{ log_statement: 'all' }])
      expect(server.pid).not.toBe(crashed)
      await after.close()
    } finally {
      await server.stop()
    }
  })
})

describe('the proxy in front of Postgres', () => {
  let database: TestDatabase
  let direct: TestConnection
  let proxy: TcpProxy
  let proxiedUrl: string
  let proxied: TestConnection

  beforeAll(async () => {
    database = await createDatabase()
    direct = connect(database.url)
    await direct.client`create table marks (id int primary key)`
  })

  beforeEach(async () => {
    const url = new URL(database.url)
    proxy = await startProxy({ port: Number(url.port), host: url.hostname })
    url.host = `127.0.0.1:${proxy.port}`
    proxiedUrl = url.href
    proxied = connect(proxiedUrl, { max: 1, connect_timeout: 5 })
  })

  afterEach(async () => {
    await proxied.close()
    await proxy.stop()
  })

  afterAll(async () => {
    await direct.close()
    await database.drop()
  })

  const insert = (id: number) =>
    proxied.client.begin((transaction) => transaction`insert into marks values (${id})`)
  const hasMark = async (id: number) =>
    (await direct.client`select 1 from marks where id = ${id}`).length === 1

  it('lets a COMMIT land whose answer never comes', async () => {
    proxy.intercept((chunk) => (isCommit(chunk) ? 'forward-and-cut' : 'forward'))
    await expect(insert(1)).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' })
    await waitUntil(() => hasMark(1), { message: 'the commit lands' })
  })

  it('keeps a COMMIT from landing', async () => {
    proxy.intercept((chunk) => (isCommit(chunk) ? 'drop-and-cut' : 'forward'))
    await expect(insert(2)).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' })
    // The id is free again as soon as the server has rolled the broken transaction back.
    await direct.client`insert into marks values (2)`
    await direct.client`delete from marks where id = 2`
    expect(await hasMark(2)).toBe(false)
    proxy.intercept(null)
    await insert(2)
    expect(await hasMark(2)).toBe(true)
  })

  it('swallows everything while it is half-open', async () => {
    await insert(3)
    proxy.halfOpen()
    const swallowed = insert(4).then(
      () => 'answered',
      () => 'failed',
    )
    const socket = connectSocket(proxy.port, '127.0.0.1')
    await once(socket, 'connect')
    socket.destroy()
    await proxy.accept()

    // A new connection works, and has had the time for an answer that the old one did not get.
    const other = connect(proxiedUrl, { max: 1 })
    expect(await other.client`select count(*)::int as marks from marks where id = 3`).toEqual([
      { marks: 1 },
    ])
    await other.close()
    expect(await Promise.race([swallowed, Promise.resolve('pending')])).toBe('pending')
    expect(await hasMark(4)).toBe(false)
    proxy.cut()
    expect(await swallowed).toBe('failed')
    expect(await hasMark(4)).toBe(false)
  })

  it('refuses connections until it accepts again', async () => {
    await insert(5)
    await proxy.refuse()
    await expect(insert(6)).rejects.toMatchObject({
      code: expect.stringMatching(/CONNECTION_CLOSED|ECONNREFUSED/),
    })
    const socket = connectSocket(proxy.port, '127.0.0.1')
    const [refusal] = await once(socket, 'error')
    expect(refusal).toMatchObject({ code: 'ECONNREFUSED' })
    await proxy.accept()
    await insert(6)
    expect(await hasMark(6)).toBe(true)
  })

  it('delays without reordering', async () => {
    await insert(7)
    proxy.delay(50)
    const start = performance.now()
    await Promise.all([insert(8), insert(9)])
    expect(performance.now() - start).toBeGreaterThan(100)
    expect(await hasMark(9)).toBe(true)
  })
})

describe.skipIf(inject('kafkaMissing'))('the shared Kafka', () => {
  it('hands back what was produced, in order per key', async () => {
    const brokers = inject('kafkaBrokers') ?? []
    const topic = uniqueName('round-trip')
    await createTopic(brokers, topic)
    const reader = await readTopic(brokers, topic)
    expect(await reader.readToEnd()).toEqual([])

    const keys = ['a', 'b', 'c', 'd', 'e']
    const messages = Array.from({ length: 100 }, (_, index) => ({
      key: keys[index % keys.length] ?? null,
      value: String(index),
      headers: { index: String(index) },
    }))
    await produce(brokers, topic, messages)

    const read = await reader.readToEnd()
    expect(read).toHaveLength(100)
    expect(await reader.waitForCount(100)).toBe(read)
    for (const key of keys) {
      const sent = messages.filter((message) => message.key === key)
      expect(
        read
          .filter((message) => message.key === key)
          .map(({ value, headers }) => ({ key, value, headers })),
      ).toEqual(sent)
    }
    await reader.stop()
  })
})

describe.skipIf(inject('ownKafkaMissing'))('a Kafka of its own', () => {
  it('keeps its messages through kill -9, behind a proxy and past it', async () => {
    const port = await findFreePort()
    const proxy = await startProxy({ port })
    const kafka = await startKafka({ port, advertisedPort: proxy.port })
    try {
      const topic = uniqueName('kept')
      await createTopic(kafka.brokers, topic, 1)
      await produce(kafka.brokers, topic, [{ key: null, value: 'before', headers: {} }])
      const killed = kafka.pid
      await kafka.kill()
      await kafka.start()
      expect(kafka.pid).not.toBe(killed)
      await produce(kafka.brokers, topic, [{ key: null, value: 'after', headers: {} }])
      await proxy.refuse()
      kafka.pause()
      kafka.resume()
      const reader = await readTopic(kafka.directBrokers, topic)
      const read = await reader.readToEnd()
      expect(read.map((message) => message.value)).toEqual(['before', 'after'])
      await reader.stop()
    } finally {
      await kafka.stop()
      await proxy.stop()
    }
  })
})

function isCommit(chunk: Buffer): boolean {
  return /commit/i.test(chunk.toString('latin1'))
}

async function produce(
  brokers: string[],
  topic: string,
  messages: { key: string | null; value: string; headers: Record<string, string> }[],
): Promise<void> {
  const producer = new Kafka({ brokers, logLevel: logLevel.NOTHING }).producer()
  await producer.connect()
  await producer.send({ topic, messages })
  await producer.disconnect()
}
