// The option `payloads`: what the table holds instead of a payload. With a cipher, the plain text is nowhere but in what is
// sent; with a store of its own for large payloads, the table holds references.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import { expect, it } from 'vitest'
import {
  EventRefusedError,
  type Outbox,
  type OutboxEvent,
  type OutboxOptions,
  type PayloadHook,
  type Publisher,
  type PublishResult,
} from '../../../src/index.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, failedAs } from '../../support/doubles/scripted-publisher.ts'
import { describeEach } from '../../support/fixture.ts'
import { drizzleOnPostgresJs, onNodePostgres } from '../../support/drivers.ts'
import { defer } from '../../support/timing/deferred.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const SECRET = 'hunter2 \u2603 "quoted"'

/** The key that seals is the last one. */
function vault(keys: Readonly<Record<string, Buffer>>) {
  const current = Object.keys(keys).at(-1)!
  const write: PayloadHook = (payload, { aggregateId }) => {
    const nonce = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', keys[current]!, nonce).setAAD(
      Buffer.from(aggregateId),
    )
    const sealed = Buffer.concat([cipher.update(payload, 'utf8'), cipher.final()])
    const data = Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64')
    return JSON.stringify({ key: current, data })
  }
  const read: PayloadHook = (stored, { aggregateId }) => {
    const { key, data } = JSON.parse(stored) as { key: string; data: string }
    const bytes = Buffer.from(data, 'base64')
    const cipher = createDecipheriv('aes-256-gcm', keys[key]!, bytes.subarray(0, 12))
    cipher.setAAD(Buffer.from(aggregateId)).setAuthTag(bytes.subarray(12, 28))
    return Buffer.concat([cipher.update(bytes.subarray(28)), cipher.final()]).toString('utf8')
  }
  return { write, read }
}

/** Keeps what it is sent, as text. */
function recordingPublisher(answer: (event: OutboxEvent) => PublishResult = acked) {
  const sent: OutboxEvent[] = []
  const publisher: Publisher = {
    name: 'recording',
    async publish(events) {
      const results = events.map(answer)
      sent.push(...events.filter((_, n) => results[n]!.ok))
      return results
    },
  }
  return { publisher, sent, texts: () => sent.map(({ payload }) => payload) }
}

const k1 = randomBytes(32)
const retriable = (text: string) => Object.assign(new Error(text), { retriable: true })

describeEach([drizzleOnPostgresJs, onNodePostgres], (fixture) => {
  type Options = Partial<OutboxOptions> & Pick<OutboxOptions, 'publisher'>
  const open = async (options: Options) => {
    const logger = recordingLogger()
    const outbox = fixture.outbox({ logger, ...options })
    await outbox.start()
    return { outbox, logger }
  }
  const emit = (outbox: Outbox, ...events: Parameters<typeof newEvent>[0][]) =>
    outbox.withOutbox((_, emitEvents) => emitEvents(events.map((event) => newEvent(event))))
  const wholeTable = async () => {
    const rows = await fixture.sql<{ row: string }[]>`select o::text as row from outbox o`
    return rows.map(({ row }) => row).join('\n')
  }
  const storedPayloads = async () => {
    const rows = await fixture.sql<{ payload: string }[]>`
      select payload::text from outbox order by seq`
    return rows.map(({ payload }) => payload)
  }
  const allPublished = () =>
    waitUntil(
      async () => {
        const rows = await fixture.rows()
        return rows.length > 0 && rows.every(({ status }) => status === 'published')
      },
      { message: 'every event is published' },
    )

  it('keeps the plain text out of the table, and sends it byte for byte on both paths', async () => {
    const { publisher, texts } = recordingPublisher()
    const payload = { SECRET, price: 1.5, none: null }
    const { outbox } = await open({ publisher, payloads: vault({ k1 }) })
    await emit(outbox, { payload }, { payload: [SECRET] })
    await allPublished()
    const later = fixture.outbox({ publisher, immediate: false, payloads: vault({ k1 }) })
    await emit(later, { payload: SECRET })
    await fixture.driver.begin(fixture.db, async (tx) => {
      await later.emitIn(tx, newEvent({ payload: { own: SECRET } }))
    })
    expect(await later.pollOnce()).toBe(2)
    await allPublished()
    const plain = [payload, [SECRET], SECRET, { own: SECRET }].map((one) => JSON.stringify(one))
    expect(texts().toSorted()).toEqual(plain.toSorted())
    expect((await storedPayloads())[0]).toContain('"key":"k1"')
    expect(await wholeTable()).not.toContain('hunter2')
  })

  it('reads what an earlier key has sealed', async () => {
    const { publisher, texts } = recordingPublisher()
    const before = fixture.outbox({ publisher, immediate: false, payloads: vault({ k1 }) })
    await emit(before, { payload: 'old' })
    const rotated = fixture.outbox({
      publisher,
      immediate: false,
      payloads: vault({ k1, k2: randomBytes(32) }),
    })
    await emit(rotated, { payload: 'new' })
    expect((await storedPayloads()).map((text) => text.slice(0, 11))).toEqual([
      '{"key":"k1"',
      '{"key":"k2"',
    ])
    await rotated.drain()
    expect(texts()).toEqual(['"old"', '"new"'])
  })

  it('lets a unit fail as a whole when write() fails, after every call of it has ended', async () => {
    const { publisher } = recordingPublisher()
    const slow = defer()
    const write: PayloadHook = async (payload) => {
      if (payload === '"bad"') throw new RangeError(`cannot seal ${SECRET}`)
      await slow.promise
      return payload
    }
    const { outbox, logger } = await open({ publisher, payloads: { write } })
    const failing = emit(outbox, { payload: 'good' }, { payload: 'bad' })
    let isOver = false
    void failing.catch(() => (isOver = true))
    await fixture.sql`select 1`
    expect(isOver).toBe(false)
    slow.resolve()
    const error = await failing.catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(EventRefusedError)
    expect(error).toMatchObject({
      code: 'PAYLOAD_WRITE_FAILED',
      message: expect.stringContaining('RangeError'),
    })
    expect(inspect([error, logger.lines], { depth: 9 })).not.toContain('hunter2')
    expect(await fixture.rows()).toEqual([])
  })

  it.each([
    ['no text', () => 42 as never],
    ['text that is not JSON', () => 'sealed'],
    ['JSON that Postgres cannot store', () => '"\\u0000"'],
  ])('refuses a write() that returns %s', async (_, write) => {
    const { publisher } = recordingPublisher()
    const { outbox } = await open({ publisher, payloads: { write } })
    await expect(emit(outbox, {})).rejects.toMatchObject({ code: 'PAYLOAD_WRITE_FAILED' })
    await expect(
      fixture.driver.begin(fixture.db, (tx) => outbox.emitIn(tx, newEvent())),
    ).rejects.toMatchObject({ code: 'PAYLOAD_WRITE_FAILED' })
    expect(await fixture.rows()).toEqual([])
  })

  it('sends a reference to a payload that is kept elsewhere, and limits the size of what is stored', async () => {
    const { publisher, texts } = recordingPublisher()
    const objects = new Map<string, string>()
    const write: PayloadHook = (payload, { id, type }) => {
      if (payload.length < 1_000 || type === 'NotKept') return payload
      objects.set(id, payload)
      return JSON.stringify({ ref: id })
    }
    const { outbox } = await open({ publisher, payloads: { write }, maxPayloadBytes: 1_000 })
    const large = 'x'.repeat(5_000)
    const [id] = await emit(outbox, { payload: large }, { payload: 'small' })
    await allPublished()
    expect(texts().toSorted()).toEqual([`"small"`, JSON.stringify({ ref: id })])
    expect(objects.get(id!)).toBe(JSON.stringify(large))
    await expect(emit(outbox, { type: 'NotKept', payload: large })).rejects.toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
    })
  })

  it('calls write() for what is saved alone, with the event but for its payload', async () => {
    const { publisher } = recordingPublisher()
    const heads: unknown[] = []
    const write: PayloadHook = (payload, head) => {
      heads.push(head)
      return payload
    }
    const { outbox } = await open({ publisher, payloads: { write } })
    await outbox.withOutbox(async (tx, emitEvent) => {
      const lost = fixture.driver.nest(tx, async () => {
        emitEvent(newEvent({ type: 'RolledBack' }))
        throw new Error('rolled back')
      })
      await lost.catch(() => {})
      emitEvent(newEvent({ aggregateId: 'one', headers: { tenant: 't' } }))
    })
    const { aggregateType, type } = newEvent()
    const id = expect.any(String)
    const headers = { tenant: 't' }
    expect(heads).toEqual([
      { id, type, aggregateType, aggregateId: 'one', topic: 'order', headers },
    ])
  })

  it.each([
    ['is away', () => Promise.reject(retriable(`no key for ${SECRET}`))],
    ['does not answer', () => new Promise<string>(() => {})],
  ])('waits in order and without attempts while the keeper of the keys %s', async (_, unread) => {
    const { publisher, texts } = recordingPublisher()
    const { read } = vault({ k1 })
    let isAway = true
    const { outbox, logger } = await open({
      publisher,
      poller: true,
      pollInterval: '50ms',
      publishTimeout: '400ms',
      payloads: {
        write: vault({ k1 }).write,
        read: (stored, head) => (isAway ? unread() : read(stored, head)),
      },
    })
    const opened = nextEvent(outbox.events, 'circuit:open')
    const probed = nextEvent(outbox.events, 'circuit:half-open')
    const of = (n: number) => ({ aggregateId: 'one', payload: { n, SECRET } })
    await emit(outbox, of(1), of(2))
    await emit(outbox, of(3))
    const { error, topic } = await opened
    expect(error).toMatchObject({ code: 'PAYLOAD_READ_FAILED' })
    expect(topic).toBe('order')
    await probed
    expect(await fixture.rows()).toMatchObject(
      [1, 2, 3].map(() => ({ status: 'pending', attempts: 0 })),
    )
    isAway = false
    await allPublished()
    expect(texts()).toEqual([1, 2, 3].map((n) => JSON.stringify({ n, SECRET })))
    expect(await fixture.rows()).toMatchObject([1, 2, 3].map(() => ({ attempts: 0 })))
    expect(inspect(logger.lines, { depth: 9 })).not.toContain('hunter2')
    expect(await wholeTable()).not.toContain('hunter2')
  })

  it('makes a dead letter of what cannot be read, alone, and sends it when it can be', async () => {
    const { publisher, texts } = recordingPublisher()
    const { write, read } = vault({ k1 })
    let isBroken = true
    const payloads = {
      write,
      read: (async (stored, head) => {
        const plain = await read(stored, head)
        if (isBroken && plain.includes('bad')) throw new RangeError(`cannot read ${plain}`)
        return plain
      }) as PayloadHook,
    }
    const { outbox, logger } = await open({ publisher, payloads, deadLetterTopic: 'dead' })
    const of = (text: string) => ({ aggregateId: 'one', payload: `${text} ${SECRET}` })
    await emit(outbox, of('first'), of('bad'), of('last'))
    await waitUntil(async () => (await outbox.stats()).dead.count === 1, {
      message: 'a dead letter',
    })
    await waitUntil(() => texts().length === 2, { message: 'the others go out' })
    const [letter] = await outbox.deadLetters.list()
    expect(letter!.error).toMatch(
      /PublishError: payloads.read\(\) of 'OrderCompleted' failed with RangeError/,
    )
    expect(letter!.payload).toContain('"key":"k1"')
    isBroken = false
    await outbox.deadLetters.retry({ all: true })
    // The event itself, and its copy for the topic of dead letters.
    await outbox.drain()
    const bad = JSON.stringify(of('bad').payload)
    expect(texts().slice(2)).toEqual([bad, bad])
    expect(inspect(logger.lines, { depth: 9 })).not.toContain('hunter2')
    expect(await wholeTable()).not.toContain('hunter2')
  })

  it('keeps what could not be read, and what follows it, in order where dead letters hold', async () => {
    const { publisher, texts } = recordingPublisher()
    const read: PayloadHook = (stored) => {
      if (stored === '"bad"') throw new Error('never')
      return stored
    }
    const { outbox } = await open({ publisher, payloads: { read }, onDeadLetter: 'hold' })
    const of = (payload: string, aggregateId = 'one') => ({ payload, aggregateId })
    await emit(outbox, of('first'), of('bad'), of('held'), of('other', 'two'))
    await waitUntil(async () => (await outbox.stats()).dead.count === 1, {
      message: 'a dead letter',
    })
    await waitUntil(() => texts().length === 2, { message: 'the others go out' })
    expect(texts().toSorted()).toEqual(['"first"', '"other"'])
    await outbox.drain()
    expect(texts()).toHaveLength(2)
  })

  it('gives each event its own result when some are read and the publisher refuses others', async () => {
    const { publisher, texts } = recordingPublisher((event) =>
      event.payload === '"refused"' ? failedAs('permanent') : acked(event),
    )
    const read: PayloadHook = (stored) => {
      if (stored === '"unread"') throw new Error('never')
      return stored
    }
    const { outbox } = await open({ publisher, payloads: { read } })
    await emit(
      outbox,
      ...['one', 'unread', 'two', 'refused', 'three'].map((payload) => ({ payload })),
    )
    await waitUntil(
      async () => (await fixture.rows()).every(({ status }) => status !== 'pending'),
      {
        message: 'every event has its outcome',
      },
    )
    expect((await fixture.rows()).map(({ status }) => status)).toEqual([
      'published',
      'dead_letter',
      'published',
      'dead_letter',
      'published',
    ])
    expect(texts().toSorted()).toEqual(['"one"', '"three"', '"two"'])
  })
})
