// The connections of the RabbitMQ publisher: how many there are, when one is given up for another, and what is
// waited for. Real connections, some of which are made to misbehave.
import type { Socket } from 'node:net'
import { inspect } from 'node:util'
import { type ChannelModel, type ConfirmChannel, connect } from 'amqplib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { PublishResult } from '../../../src/index.ts'
import { rabbitmqPublisher } from '../../../src/publishers/rabbitmq/rabbitmq-publisher.ts'
import { describeWithRabbit, rabbitUrl } from '../../support/fixture.ts'
import { openRabbit, proxyRabbit, type Rabbit } from '../../support/servers/rabbitmq.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { defer } from '../../support/timing/deferred.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const verdicts = (results: readonly PublishResult[]) =>
  results.map((result) => (result.ok ? 'ok' : result.kind))

type Publish = ConfirmChannel['publish']

/** A real connection, whose channels publish in the way of the test. */
async function connectWith(
  adapt: (channel: ConfirmChannel, publish: Publish) => Publish,
): Promise<ChannelModel> {
  const connection = await connect(rabbitUrl())
  const createConfirmChannel = connection.createConfirmChannel.bind(connection)
  connection.createConfirmChannel = async (options) => {
    const channel = await createConfirmChannel(options)
    channel.publish = adapt(channel, channel.publish.bind(channel))
    return channel
  }
  return connection
}

describeWithRabbit('the connections of rabbitmqPublisher', () => {
  let far: Rabbit
  beforeAll(async () => {
    far = await openRabbit(rabbitUrl())
  })
  afterAll(() => far.close())

  it('waits when amqplib asks for a pause, and sends thousands at once without losing one', async () => {
    let [full, unheard, pauses] = [false, 0, 0]
    const publisher = rabbitmqPublisher({
      connect: () =>
        connectWith((channel, publish) => {
          channel.on('drain', () => {
            full = false
          })
          return (...args) => {
            if (full) unheard += 1
            full = !publish(...args)
            if (full) pauses += 1
            return !full
          }
        }),
    })
    const queue = await far.declareQueue()
    const events = Array.from({ length: 3_000 }, () =>
      outboxEvent({ topic: queue, payload: JSON.stringify('x'.repeat(3_000)) }),
    )
    const results = await publisher.publish(events)
    await publisher.disconnect?.()
    expect(results.every(({ ok }) => ok)).toBe(true)
    expect(pauses).toBeGreaterThan(0)
    expect(unheard).toBe(0)
    const ids = (await far.read(queue)).map(({ id }) => id)
    expect(new Set(ids)).toEqual(new Set(events.map(({ id }) => id)))
    expect(ids).toHaveLength(events.length)
  })

  it('keeps a connection that another outbox opens while the last one to stop closes its own', async () => {
    const isOpenAgain = defer()
    let [made, closed] = [0, 0]
    const publisher = rabbitmqPublisher({
      connect: async () => {
        const connection = await connect(rabbitUrl())
        made += 1
        const close = connection.close.bind(connection)
        connection.close = async () => {
          await isOpenAgain.promise
          await close()
          closed += 1
        }
        return connection
      },
    })
    const send = async () => {
      return verdicts(await publisher.publish([outboxEvent({ topic: await far.declareQueue() })]))
    }
    expect(await send()).toEqual(['ok'])
    const closing = publisher.disconnect!()
    expect(await send()).toEqual(['ok'])
    isOpenAgain.resolve()
    await closing
    expect([made, closed]).toEqual([2, 1])
    await publisher.disconnect!()
    expect([made, closed]).toEqual([2, 2])
  })

  it('keeps a connection that another outbox opens while the last one to stop still connects', async () => {
    const isSlow = defer()
    let made = 0
    const closed: number[] = []
    const publisher = rabbitmqPublisher({
      connect: async () => {
        const mine = (made += 1)
        if (mine === 1) await isSlow.promise
        const connection = await connect(rabbitUrl())
        connection.on('close', () => closed.push(mine))
        return connection
      },
    })
    const connecting = publisher.connect!().catch(() => {})
    const closing = publisher.disconnect!()
    const queue = await far.declareQueue()
    expect(verdicts(await publisher.publish([outboxEvent({ topic: queue })]))).toEqual(['ok'])
    isSlow.resolve()
    await Promise.all([connecting, closing])
    expect(closed).toEqual([1])
    await publisher.disconnect!()
    expect(closed).toEqual([1, 2])
  })

  it('opens one connection however many send at once, and one more after it died', async () => {
    const made: ChannelModel[] = []
    const publisher = rabbitmqPublisher({
      connect: async () => {
        const connection = await connect(rabbitUrl())
        made.push(connection)
        return connection
      },
    })
    const queue = await far.declareQueue()
    const publishAll = () =>
      Promise.all(
        Array.from({ length: 20 }, () => publisher.publish([outboxEvent({ topic: queue })])),
      )
    expect(verdicts((await publishAll()).flat())).toEqual(Array(20).fill('ok'))
    expect(made).toHaveLength(1)
    const closed = new Promise((resolve) => made[0]!.once('close', resolve))
    await made[0]!.close()
    await closed
    expect(verdicts((await publishAll()).flat())).toEqual(Array(20).fill('ok'))
    expect(made).toHaveLength(2)
    await publisher.disconnect?.()
  })

  it('blames the connection, not the queue, when it is closed with an event on its way', async () => {
    const queue = await far.declareQueue()
    const publisher = rabbitmqPublisher({
      connect: async () => {
        const connection = await connectWith((_, publish) => (...args) => {
          const room = publish(...args)
          void connection.close()
          return room
        })
        return connection
      },
    })
    const [result] = await publisher.publish([outboxEvent({ topic: queue })])
    expect(result).toMatchObject({ kind: 'transient', blames: 'broker' })
    await publisher.disconnect?.()
  })

  it('sends nothing on a connection that RabbitMQ has blocked, and goes on when it is free', async () => {
    // An alarm for memory or disk would stop the whole server, so the connection is told by the test that
    // there is one; everything else is real.
    let connection: ChannelModel | undefined
    const publisher = rabbitmqPublisher({
      connect: async () => (connection = await connect(rabbitUrl())),
    })
    const queue = await far.declareQueue()
    const publish = () => publisher.publish([outboxEvent({ topic: queue })])
    expect(verdicts(await publish())).toEqual(['ok'])
    connection!.emit('blocked', 'low on memory')
    expect(await publish()).toMatchObject([
      {
        kind: 'transient',
        blames: 'broker',
        error: { message: expect.stringMatching(/low on memory/) },
      },
    ])
    connection!.emit('unblocked')
    expect(verdicts(await publish())).toEqual(['ok'])
    await publisher.disconnect?.()
    expect(await far.read(queue)).toHaveLength(2)
  })

  it('closes the connection it opened, and no other', async () => {
    let own: ChannelModel | undefined
    const publisher = rabbitmqPublisher({ connect: async () => (own = await connect(rabbitUrl())) })
    await publisher.connect?.()
    const closed = new Promise((resolve) => own!.once('close', resolve))
    await publisher.disconnect?.()
    await closed
    expect(await far.declareQueue()).toBeTypeOf('string')
  })

  it('reports a server that cannot be reached as transient, without a word of the password', async () => {
    const password = 'do-not-show-me'
    const refused = new URL(rabbitUrl())
    refused.password = password
    for (const url of [`amqp://me:${password}@127.0.0.1:1`, refused.href]) {
      const publisher = rabbitmqPublisher({ url })
      const [result] = await publisher.publish([outboxEvent()])
      expect(result).toMatchObject({ kind: 'transient', blames: 'broker' })
      await expect(publisher.connect?.()).rejects.toThrow(/ECONNREFUSED|ACCESS_REFUSED/)
      await publisher.disconnect?.()
      expect(inspect(result, { depth: 9, showHidden: true })).not.toContain(password)
    }
    const broken = () => rabbitmqPublisher({ url: `http://me:${password}@host` })
    expect(broken).toThrow(/url must be a RabbitMQ URL/)
    expect(broken).not.toThrow(new RegExp(password))
  })

  it('connects again by itself after a first try that failed, a cut, and a silence', async () => {
    const { proxy, url } = await proxyRabbit(rabbitUrl())
    const sockets: { destroyed: boolean }[] = []
    const publisher = rabbitmqPublisher({
      connect: async () => {
        const connection = await connect(url, { timeout: 1_000 })
        sockets.push((connection.connection as never as { stream: Socket }).stream)
        return connection
      },
      connectTimeout: '1s',
      confirmTimeout: '1s',
    })
    const queue = await far.declareQueue()
    const publish = async () => verdicts(await publisher.publish([outboxEvent({ topic: queue })]))
    await proxy.refuse()
    expect(await publish()).toEqual(['transient'])
    // A connection that takes longer than a second is given up for the next.
    const connectedAgain = () =>
      waitUntil(async () => (await publish())[0] === 'ok', { message: 'it connected again' })
    await proxy.accept()
    await connectedAgain()
    proxy.cut()
    await connectedAgain()
    proxy.halfOpen()
    // The connection there is, and then one that is new. What was not written is not written later either.
    expect(await publish()).toEqual(['transient'])
    expect(sockets.at(-1)?.destroyed).toBe(true)
    expect(await publish()).toEqual(['transient'])
    await proxy.accept()
    await connectedAgain()
    await publisher.disconnect?.()
    // Not even the one that never answered is left.
    await waitUntil(() => sockets.every(({ destroyed }) => destroyed), {
      message: 'all sockets were closed',
    })
    await proxy.stop()
  })

  it('leaves no socket to a peer that amqplib has found to be gone', async () => {
    const { proxy, url } = await proxyRabbit(rabbitUrl())
    let socket: Socket | undefined
    const publisher = rabbitmqPublisher({
      connect: async () => {
        const connection = await connect(`${url}?heartbeat=1`)
        socket = (connection.connection as never as { stream: Socket }).stream
        return connection
      },
    })
    await publisher.connect?.()
    proxy.halfOpen()
    await waitUntil(() => socket?.destroyed, { message: 'the socket was closed' })
    expect(await publisher.disconnect?.()).toBeUndefined()
    await proxy.stop()
  })

  it('leaves a connection that has gone silent for another, and still hears its late confirms', async () => {
    const { proxy, url } = await proxyRabbit(rabbitUrl())
    let connections = 0
    const publisher = rabbitmqPublisher({
      connect: async () => {
        connections += 1
        return await connect(url)
      },
    })
    const queue = await far.declareQueue()
    const settled: string[] = []
    const publish = async (payload: string) => {
      const results = await publisher.publish([outboxEvent({ topic: queue, payload })])
      settled.push(`${payload} ${String(verdicts(results))}`)
    }
    await publish('1')
    // Each chunk is held back for as long as was asked for when it came, and those behind it with it.
    const held = new Promise<void>((resolve) => {
      proxy.intercept(() => {
        resolve()
        return 'forward'
      })
    })
    proxy.delay(12_000)
    const slow = publish('2')
    await held
    proxy.delay(0)
    let last: Promise<void> | undefined
    let tries = 0
    await waitUntil(
      () => {
        if (connections === 1) last = publish(`try ${(tries += 1)}`)
        return connections === 2
      },
      { message: 'a connection was opened beside the silent one' },
    )
    await last
    expect(settled).toEqual(['1 ok', `try ${tries} ok`])
    await slow
    await waitUntil(() => settled.length === tries + 2, { message: 'the held ones were confirmed' })
    expect(settled.filter((one) => !one.endsWith(' ok'))).toEqual([])
    await publisher.disconnect?.()
    await proxy.stop()
    expect(await far.read(queue)).toHaveLength(tries + 2)
  })
})

describeWithRabbit('rabbitmqPublisher, when a confirm does not come', () => {
  let far: Rabbit
  beforeAll(async () => {
    far = await openRabbit(rabbitUrl())
  })
  afterAll(() => far.close())

  // A queue that takes a message and never confirms it has to have lost most of its cluster. Here the channel keeps
  // what is for that queue to itself; everything else is real.
  async function withStuckQueue(confirmTimeout: `${number}ms`) {
    const [queue, stuck] = [await far.declareQueue(), uniqueName('stuck')]
    const made: ChannelModel[] = []
    async function connectStuck() {
      const connection = await connectWith((_, publish) => {
        return (...args) => args[1] === stuck || publish(...args)
      })
      made.push(connection)
      return connection
    }
    const publisher = rabbitmqPublisher({ connect: connectStuck, confirmTimeout })
    return { publisher, queue, stuck, made }
  }

  it('blames the queue while the connection answers, and keeps the connection', async () => {
    const { publisher, queue, stuck, made } = await withStuckQueue('500ms')
    const event = (topic: string) => outboxEvent({ topic, aggregateId: topic })
    const results = await publisher.publish([stuck, queue, stuck].map(event))
    expect(results).toMatchObject([
      {
        kind: 'transient',
        blames: 'topic',
        error: { message: expect.stringMatching(/did not confirm/) },
      },
      { ok: true },
      { kind: 'held' },
    ])
    expect(verdicts(await publisher.publish([event(queue)]))).toEqual(['ok'])
    await publisher.disconnect?.()
    expect(made).toHaveLength(1)
  })

  it('keeps a blocked connection, so that what lies before RabbitMQ is not sent there again', async () => {
    const { publisher, queue, stuck, made } = await withStuckQueue('500ms')
    const waiting = publisher.publish([outboxEvent({ topic: stuck })])
    await waitUntil(() => made.length === 1, { message: 'it connected' })
    made[0]!.emit('blocked', 'low on disk')
    expect(await waiting).toMatchObject([{ kind: 'transient', blames: 'broker' }])
    made[0]!.emit('unblocked')
    expect(verdicts(await publisher.publish([outboxEvent({ topic: queue })]))).toEqual(['ok'])
    await publisher.disconnect?.()
    expect(made).toHaveLength(1)
  })

  it('takes a confirm that comes while it asks whether the connection is alive', async () => {
    let confirm: ((error: unknown, ok: object) => void) | undefined
    const publisher = rabbitmqPublisher({
      confirmTimeout: '100ms',
      connect: async () => {
        const connection = await connectWith(() => (...args) => {
          confirm = args[4]
          return true
        })
        const createChannel = connection.createChannel.bind(connection)
        connection.createChannel = async (options) => {
          confirm?.(null, {})
          return await createChannel(options)
        }
        return connection
      },
    })
    expect(verdicts(await publisher.publish([outboxEvent()]))).toEqual(['ok'])
    await publisher.disconnect?.()
  })

  it('leaves the rest of a long aggregate to another batch, when this one has taken its time', async () => {
    const { publisher, queue } = await withStuckQueue('400ms')
    const events = Array.from({ length: 5_000 }, () => {
      return outboxEvent({ topic: queue, aggregateId: '1' })
    })
    const results = await publisher.publish(events)
    await publisher.disconnect?.()
    const sent = results.filter(({ ok }) => ok).length
    expect(sent).toBeGreaterThan(0)
    expect(results[sent]).toMatchObject({
      kind: 'held',
      error: { message: expect.stringMatching(/too long/) },
    })
    expect(await far.read(queue)).toHaveLength(sent)
  })
})
