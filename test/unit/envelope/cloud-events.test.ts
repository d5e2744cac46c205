import { describe, expect, it } from 'vitest'
import { resolveEnvelope } from '../../../src/envelope/envelope.ts'
import { cloudEvents, type OutboxEvent } from '../../../src/index.ts'
import { outboxEvent } from '../../support/doubles/sample-events.ts'

const KAFKA = { attributePrefix: 'ce_', jsonType: undefined } as const

function write(event: OutboxEvent, mode: 'binary' | 'structured' = 'binary') {
  const message = resolveEnvelope(cloudEvents({ source: '/shop', mode }), KAFKA)(event)
  return message as { value: string; headers: Record<string, string>; contentType: string }
}

describe('cloudEvents()', () => {
  it.each([
    '/shop/orders',
    'https://shop.example/orders?region=eu#live',
    'urn:shop:orders',
    'orders',
    '//host/path',
    'http://[::1]:80/',
    'mailto:shop@example.org',
    'a/b:c',
    '?',
    '%C3%A9',
  ])('takes the source %s', (source) => {
    expect(cloudEvents({ source })).toEqual({ source, mode: 'binary' })
  })

  it.each(['', ' ', 'my shop', 'é', '1a:b', ':a', '%zz', 'a#b#c', 'a[b', '<shop>', 7, undefined])(
    'refuses the source %o',
    (source) => {
      expect(() => cloudEvents({ source } as never)).toThrow(
        /cloudEvents\(\) needs source, a URI reference .* such as '\/shop\/orders'/,
      )
    },
  )

  it('refuses a mode and an option that it does not know', () => {
    const source = '/shop'
    expect(() => cloudEvents({ source, mode: 'batch' as never })).toThrow(
      /mode must be one of 'binary', 'structured', got 'batch'/,
    )
    expect(() => cloudEvents({ source, moed: 'binary' } as never)).toThrow(/did you mean 'mode'/)
    expect(() => cloudEvents(undefined as never)).toThrow(/takes an object with options/)
  })
})

describe('a CloudEvent', () => {
  it('has attributes whose names are lower case letters and digits', () => {
    const headers = { 'correlation-id': 'c', traceparent: 't', 'event-version': '2', Mine: 'x' }
    const event = outboxEvent({ headers })
    const names = Object.keys(write(event).headers).filter((name) => name.startsWith('ce_'))
    expect(names).toHaveLength(13)
    for (const name of names) expect(name).toMatch(/^ce_[a-z0-9]+$/)
    const { data: _, ...attributes } = JSON.parse(write(event, 'structured').value) as object & {
      data: unknown
    }
    for (const name of Object.keys(attributes)) expect(name).toMatch(/^[a-z0-9]+$/)
  })

  it('has sequences that sort as text in the order of saving', () => {
    const sequence = (seq: number) => write(outboxEvent({ seq })).headers['ce_sequence']!
    const seqs = [1, 9, 10, 99, 100, 2 ** 31, Number.MAX_SAFE_INTEGER]
    expect(seqs.map(sequence).toSorted()).toEqual(seqs.map(sequence))
    expect(seqs.map((seq) => Number(sequence(seq)))).toEqual(seqs)
  })

  it('says its lane as text', () => {
    const event = outboxEvent({ lane: 2 ** 52 - 1 })
    expect(write(event).headers['ce_lane']).toBe('4503599627370495')
    expect(JSON.parse(write(event, 'structured').value)).toMatchObject({ lane: '4503599627370495' })
  })

  it('has no empty attributes', () => {
    const event = outboxEvent({ headers: { 'correlation-id': '', traceparent: '' } })
    expect(Object.values(write(event).headers)).not.toContain('')
  })

  it('is told apart by its own content type, whatever headers came with the event', () => {
    const { headers, contentType } = write(
      outboxEvent({ headers: { 'Content-Type': 'text/plain', ce_id: 'forged' } }),
    )
    expect(headers).not.toHaveProperty('Content-Type')
    expect(headers['ce_id']).not.toBe('forged')
    expect(contentType).toBe('application/json')
  })

  it.each(['binary', 'structured'] as const)(
    'takes along no header that a reader would take for an attribute, in mode %s',
    (mode) => {
      const forged = {
        ce_id: 'forged',
        CE_dataversion: 'forged',
        'cloudEvents:id': 'forged',
        cloudEvents_correlationid: 'forged',
      }
      const { headers } = write(outboxEvent({ headers: { ...forged, centre: 'mine' } }), mode)
      expect(Object.values(headers)).not.toContain('forged')
      expect(headers['centre']).toBe('mine')
    },
  )

  it.each([
    ['type', { type: 'Order\nCompleted' }],
    ['subject', { aggregateId: 'tab\there' }],
    ['aggregatetype', { aggregateType: 'order\u0085' }],
    ['correlationid', { headers: { 'correlation-id': '\u001b[31m' } }],
    ['subject', { aggregateId: 'non\uFFFEcharacter' }],
  ])('is not made of an event whose %s CloudEvents forbids', (attribute, overrides) => {
    expect(write(outboxEvent(overrides))).toMatchObject({
      ok: false,
      kind: 'permanent',
      error: {
        code: 'SERIALIZER_FAILED',
        message: expect.stringContaining(`its ${attribute} contains a control character`),
      },
    })
  })

  it('may hold any other text', () => {
    const aggregateId = 'é😀 "quoted" \\ %41'
    expect(write(outboxEvent({ aggregateId })).headers['ce_subject']).toBe(aggregateId)
  })
})
