import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { resolveEnvelope } from '../../../src/envelope/envelope.ts'
import { writeAll } from '../../../src/envelope/serializer.ts'
import type { EventSerializer } from '../../../src/index.ts'
import { defer } from '../../support/timing/deferred.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'

const RABBITMQ = { attributePrefix: 'cloudEvents:', jsonType: 'application/json' } as const
const write = async (serialize: (...event: Parameters<EventSerializer>) => unknown) =>
  await resolveEnvelope(serialize as EventSerializer, RABBITMQ)(outboxEvent({ id: 'the-id' }))

const reject = (thrown: unknown): Promise<never> => Promise.reject(thrown)

describe('a serializer', () => {
  it.each([
    ['a string', () => 'text', 'text'],
    ['a buffer', () => Buffer.from([0, 255]), Buffer.from([0, 255])],
    ['bytes', () => new Uint8Array([0, 1, 2]).subarray(1), Buffer.from([1, 2])],
    ['nothing at all in bytes', () => new Uint8Array(0), Buffer.alloc(0)],
    ['a promise', async () => 'later', 'later'],
    ['a message', () => ({ value: 'inside' }), 'inside'],
  ])('may answer %s, and says nothing of its type then', async (_, serialize, value) => {
    const message = await write(serialize)
    expect(message).toMatchObject({ value, contentType: undefined })
    expect(message).toMatchObject({ headers: { 'event-id': 'the-id', 'aggregate-type': 'order' } })
  })

  it('may add headers and replace them, and keeps those that it does not mention', async () => {
    const headers = { schema: '7', 'event-type': 'shop.OrderCompleted' }
    expect(
      await write(() => ({ value: 'x', headers, contentType: 'application/avro' })),
    ).toMatchObject({
      contentType: 'application/avro',
      headers: { schema: '7', 'event-type': 'shop.OrderCompleted', 'event-id': 'the-id' },
    })
  })

  it('may use its buffer again', async () => {
    const scratch = Buffer.alloc(1)
    const serialize: EventSerializer = ({ seq }) => scratch.fill(seq)
    const writer = resolveEnvelope(serialize, RABBITMQ)
    const messages = [1, 2].map((seq) => writer(outboxEvent({ seq })))
    expect(messages).toMatchObject([{ value: Buffer.from([1]) }, { value: Buffer.from([2]) }])
  })

  it.each([
    ['undefined', () => undefined],
    ['null', async () => null],
    ['a number', () => 7],
    ['an object of its own', () => ({ orderId: 'hunter2' })],
    ['a list', () => [1, 2]],
    ['wide numbers', () => new Uint16Array(2)],
    ['no value', () => ({ value: null })],
    ['a misspelt field', () => ({ value: 'x', header: {} })],
    ['headers that are no texts', () => ({ value: 'x', headers: { hunter2: 7 } })],
    ['a header that consumers cannot read', () => ({ value: 'x', headers: { toString: 'x' } })],
    ['a header without a name', () => ({ value: 'x', headers: { '': 'x' } })],
    ['headers that are a text', () => ({ value: 'x', headers: 'hunter2' })],
    ['an empty content type', () => ({ value: 'x', contentType: '' })],
    ['an answer that cannot be read', () => new Proxy({}, { ownKeys: () => JSON.parse('{') })],
  ])('that answers %s makes its event a dead letter', async (_, serialize) => {
    const failure = await write(serialize)
    expect(failure).toMatchObject({ ok: false, kind: 'permanent' })
    expect(failure).toMatchObject({ error: { code: 'SERIALIZER_FAILED' } })
    expect(inspect(failure, { depth: 9 })).not.toContain('hunter2')
  })

  class RegistryError extends Error {
    override readonly name = 'RegistryError'
    readonly payload = 'hunter2'
  }

  it.each([
    [
      'throws',
      (thrown: unknown) => () => {
        throw thrown
      },
    ],
    ['rejects', (thrown: unknown) => () => reject(thrown)],
  ])('that %s names the kind of error, and nothing that may quote the payload', async (_, fail) => {
    const failure = await write(fail(new RegistryError('no field "total" in {"card":"hunter2"}')))
    expect(failure).toMatchObject({
      ok: false,
      kind: 'permanent',
      error: {
        code: 'SERIALIZER_FAILED',
        message:
          "the serializer of 'OrderCompleted' failed with RegistryError; fix it and retry the event",
      },
    })
    expect(inspect(failure, { depth: 9 })).not.toContain('hunter2')
    expect(await write(fail('hunter2'))).toMatchObject({ kind: 'permanent' })
    expect(await write(fail(undefined))).toMatchObject({ kind: 'permanent' })
  })

  it('that cannot work for now is an outage of the topic', async () => {
    const away = Object.assign(new RegistryError('hunter2'), { retriable: true })
    const failure = await write(() => reject(away))
    expect(failure).toMatchObject({ ok: false, kind: 'transient', blames: 'topic' })
    expect(failure).toMatchObject({
      error: { message: expect.stringMatching(/retriable RegistryError/) },
    })
    expect(inspect(failure, { depth: 9 })).not.toContain('hunter2')
    for (const retriable of [false, 'true', 1]) {
      const thrown = Object.assign(new Error('no'), { retriable })
      expect(await write(() => reject(thrown))).toMatchObject({ kind: 'permanent' })
    }
  })

  it('that does not answer leaves half of the time that a batch has for sending', async () => {
    const never = resolveEnvelope(() => new Promise(() => {}), RABBITMQ)
    const waiting = (windowMs: number) => writeAll([outboxEvent()], never, windowMs)
    expect(await waiting(20)).toMatchObject([
      {
        kind: 'transient',
        blames: 'topic',
        error: { message: expect.stringMatching(/'OrderCompleted' did not finish within 10ms/) },
      },
    ])
  })

  it('that fails after nobody waits any more disturbs nobody', async () => {
    const gate = defer()
    const writer = resolveEnvelope(() => gate.promise.then(() => reject('late')), RABBITMQ)
    expect(await writeAll([outboxEvent()], writer, 2)).toMatchObject([{ kind: 'transient' }])
    gate.resolve()
    // An unheard rejection would fail the run.
    await new Promise((resolve) => setImmediate(resolve))
  })
})
