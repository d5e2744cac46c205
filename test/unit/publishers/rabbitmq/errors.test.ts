// The words are those of RabbitMQ 3.10. Permissions and limits of a server that others use too are not for a test to
// change, so these refusals are not caused for real.
import { describe, expect, it } from 'vitest'
import { classifyChannelError } from '../../../../src/publishers/rabbitmq/errors.ts'
import { toMessage } from '../../../../src/publishers/rabbitmq/message.ts'
import { outboxEvent } from '../../../support/doubles/sample-events.ts'

const refusal = (code: number, text: string) =>
  Object.assign(new Error(`Channel closed by server: ${code} with message "${text}"`), { code })

function judge(error: Error, { topic = 'orders', bytes = 2, alone = false } = {}) {
  const written = { value: 'x'.repeat(bytes), headers: {}, contentType: undefined }
  const message = toMessage(outboxEvent({ topic }), written, 'shop', undefined)
  if ('ok' in message) throw message.error
  const { kind, blames } = classifyChannelError(message, error, alone)
  return blames ? `${kind} ${blames}` : kind
}

describe('a channel that RabbitMQ closed', () => {
  it('blames the messages above the limit that it names, and no others', () => {
    const error = refusal(
      406,
      'PRECONDITION_FAILED - message size 2000 is larger than configured max size 1000',
    )
    expect(judge(error, { bytes: 2_000 })).toBe('permanent')
    expect(judge(error, { bytes: 1_500 })).toBe('permanent')
    expect(judge(error, { bytes: 1_000 })).toBe('transient topic')
  })

  it('blames everything for an exchange that may not be written to', () => {
    const text = `ACCESS_REFUSED - access to exchange 'shop' in vhost '/' refused for user 'me'`
    expect(judge(refusal(403, text))).toBe('permanent')
  })

  it('blames one routing key alone where only that is refused', () => {
    const text = `ACCESS_REFUSED - access to topic 'orders' in exchange 'shop' in vhost '/' refused for user 'me'`
    expect(judge(refusal(403, text))).toBe('permanent')
    expect(judge(refusal(403, text), { topic: 'invoices' })).toBe('transient topic')
  })

  it('blames the only message that was on it, when it does not say why', () => {
    const error = refusal(406, 'PRECONDITION_FAILED - something new')
    expect(judge(error, { alone: true })).toBe('permanent')
    expect(judge(error)).toBe('transient topic')
  })

  it('blames nobody for an exchange that is not there, or for its own trouble', () => {
    const missing = refusal(404, "NOT_FOUND - no exchange 'shop' in vhost '/'")
    expect(judge(missing, { alone: true })).toBe('transient topic')
    expect(judge(refusal(541, 'INTERNAL_ERROR'), { alone: true })).toBe('transient topic')
  })
})
