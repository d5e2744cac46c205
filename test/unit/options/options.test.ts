import { describe, expect, it } from 'vitest'
import { event } from '../../../src/event/catalog.ts'
import { DEFAULTS, type OutboxOptions, resolveOptions } from '../../../src/options/options.ts'

const minimal: OutboxOptions = {
  db: { execute: async () => [], transaction: async () => {} },
  publisher: { name: 'none', publish: async () => [] },
}
const resolve = (overrides: object) => resolveOptions({ ...minimal, ...overrides })

describe('resolveOptions()', () => {
  it('accepts its own defaults and freezes the result', () => {
    const resolved = resolve(DEFAULTS)
    expect(resolved).toMatchObject({ thresholdMs: 7_000, pollIntervalMs: 7_000, batchSize: null })
    expect(Object.isFrozen(resolved)).toBe(true)
  })

  it('takes the hooks of payloads from an object with a state of its own', () => {
    class Vault {
      readonly #key = 'k1'
      write(text: string) {
        return this.#key + text
      }
    }
    const { payloads } = resolve({ payloads: new Vault() })
    expect(payloads!.write!('x', null as never)).toBe('k1x')
    expect(payloads!.read).toBeUndefined()
    const cdc = { payloads, relay: 'cdc', publisher: undefined }
    expect(resolve(cdc).payloads!.write).toBeInstanceOf(Function)
  })

  it('treats undefined as not given', () => {
    expect(resolve({ threshold: undefined }).thresholdMs).toBe(7_000)
  })

  it.each([
    ['7s', 7_000],
    ['5500ms', 5_500],
    ['0.5m', 30_000],
    ['1h', 3_600_000],
    [6_000, 6_000],
  ])('reads the duration %s', (threshold, ms) => {
    expect(resolve({ threshold }).thresholdMs).toBe(ms)
  })

  it.each([
    [{ cleanupInterval: '1h' }, /no option 'cleanupInterval'; did you mean 'cleanup'\?/],
    [{ retries: 3 }, /no option 'retries'; expected one of threshold, pollInterval/],
    [{ retention: 7 }, /retention must be at least a second, got 7; did you mean days/],
    [{ deadLetterRetention: 0 }, /deadLetterRetention must be at least a second, got 0/],
    [{ table: 'public.outbox' }, /table must be a name without a dot, got 'public.outbox'/],
    [{ cleanup: true }, /cleanup must be a duration .* cron expression .* or false, got true/],
    [{ threshhold: '7s' }, /createOutbox\(\) has no option 'threshhold'; did you mean 'threshold'/],
    [{ threshold: '7 seconds' }, /threshold must be a duration such as '7s'/],
    [{ threshold: -1 }, /threshold must be a duration/],
    [{ threshold: Number.NaN }, /threshold must be a duration/],
    [{ threshold: '10ms', publishTimeout: '10ms' }, /threshold must be at least 100ms/],
    [{ threshold: '5s' }, /threshold must be longer than publishTimeout \(5s\), got 5s; raise/],
    [
      { backoffBase: '1h' },
      /backoffMax must not be shorter than backoffBase \(1h\), got 30m; raise backoffMax/,
    ],
    [{ batchSize: 0 }, /batchSize must be a whole number from 1 to 10000, got 0/],
    [{ batchSize: 1.5 }, /batchSize/],
    [{ payloads: {} }, /payloads needs write, read or both/],
    [{ payloads: { seal: () => '' } }, /payloads has no option 'seal'/],
    [{ payloads: { read: 'aes' } }, /payloads\.read must be a function, got 'aes'/],
    [
      { payloads: { read: () => '' }, relay: 'cdc', publisher: undefined },
      /payloads\.read would never/,
    ],
    [{ maxAttemptsByType: { A: 0 } }, /maxAttemptsByType\.A must be a whole number/],
    [
      {
        maxAttemptsByType: { OrderPlace: 2 },
        events: { OrderPlaced: event({ aggregate: 'order', key: () => 1 }) },
      },
      /maxAttemptsByType names 'OrderPlace', .*did you mean 'OrderPlaced'/,
    ],
    [{ batchSize: 10_001 }, /batchSize must be a whole number from 1 to 10000/],
    [{ maxInFlight: 0 }, /maxInFlight must be a whole number/],
    [{ maxAttempts: 0 }, /maxAttempts must be a whole number/],
    [{ maxPayloadBytes: '1MB' }, /maxPayloadBytes must be a whole number/],
    [{ pollInterval: '5ms' }, /pollInterval must be at least 10ms/],
    [{ publishTimeout: 5 }, /publishTimeout must be at least 10ms/],
    [{ stopTimeout: 'soon' }, /stopTimeout must be a duration/],
    [{ backoffBase: 'soon' }, /backoffBase must be a duration/],
    [{ backoffMax: 'never' }, /backoffMax must be a duration/],
    [{ order: 'maybe' }, /order must be one of 'aggregate', 'none'/],
    [{ ordering: 'key' }, /the option 'ordering' is now 'order'; 'key' became 'aggregate'/],
    [
      { publisher: { ...minimal.publisher, perAggregate: true } },
      /'perAggregate' of .* is now called 'perLane'/,
    ],
    [{ order: 'key' }, /order: 'key' is now order: 'aggregate'/],
    [
      { publisher: { ...minimal.publisher, name: '' } },
      /name of the publisher must be a non-empty/,
    ],
    [{ publisher: { ...minimal.publisher, orderscope: 'topic' } }, /did you mean 'orderScope'/],
    [{ publisher: { ...minimal.publisher, perLane: 'yes' } }, /perLane of .* true or false/],
    [
      { publisher: { ...minimal.publisher, timeoutMs: '5s' } },
      /timeoutMs of .* must be a number of milliseconds above 0, got '5s'/,
    ],
    [
      { publisher: { ...minimal.publisher, settlesWithinMs: Number.NaN } },
      /settlesWithinMs of .* must be a number of milliseconds above 0, got NaN/,
    ],
    [
      { publisher: { ...minimal.publisher, orderScope: 'all' } },
      /orderScope of .* 'topic', 'publisher'/,
    ],
    [{ maxBacklog: 0 }, /maxBacklog must be a whole number from 1/],
    [{ onDeadLetter: 'wait' }, /onDeadLetter must be one of 'continue', 'hold'/],
    [{ lockKeys: 'yes' }, /lockKeys must be true or false/],
    [{ deadLetterTopic: '' }, /deadLetterTopic must be a non-empty string/],
    [{ deadLetterCheck: 0 }, /deadLetterCheck must be at least 1s/],
    [{ deadLetterCheck: true }, /deadLetterCheck must be a duration/],
    [{ retention: '11y' }, /retention must be a duration/],
    [{ retention: '4000d' }, /retention must be at most ten years, .* set cleanup: false/],
    [{ deadLetterRetention: '4000d' }, /deadLetterRetention must be at most ten years/],
    [{ cleanup: 'daily' }, /cleanup must be a duration/],
    [{ cleanup: true }, /cleanup must be a duration/],
    [{ poller: 'no' }, /poller must be true or false/],
    [{ immediate: 1 }, /immediate must be true or false/],
    [{ migrate: 'yes' }, /migrate must be one of true, false, 'partitioned'/],
    [{ enabled: null }, /enabled must be true or false/],
    [{ table: '' }, /table must be a name/],
    [{ table: 'x'.repeat(60) }, /table must be a name of 1 to 49 bytes/],
    [{ schema: 'a\u0000' }, /schema must be a name/],
    [{ pollInterval: '100d' }, /pollInterval must be shorter than 25 days, got '100d'/],
    [{ topic: '' }, /topic must be a non-empty string/],
    [{ topic: 42 }, /topic must be/],
    [{ workerId: '' }, /workerId must be/],
    [{ logger: {} }, /logger must be false, or pino-shaped/],
    [{ db: {} }, /db must be a Drizzle Postgres database/],
    [{ publisher: undefined }, /publisher must be a publisher/],
  ])('refuses %o', (overrides, message) => {
    expect(() => resolve(overrides)).toThrow(message)
    expect(() => resolve(overrides)).toThrow(expect.objectContaining({ code: 'OPTIONS_INVALID' }))
  })

  it('says what is missing when nothing is given', () => {
    expect(() => resolveOptions(undefined as never)).toThrow(
      /takes an object with options, got undefined/,
    )
  })

  it('waits for a statement as long as for a lease, and five seconds at least', () => {
    const timeout = (threshold: string) =>
      resolve({ threshold, publishTimeout: '100ms' }).statementTimeoutMs
    expect([timeout('1s'), timeout('20s')]).toEqual([5_000, 20_000])
  })

  it('switches both paths off with enabled: false', () => {
    expect(resolve({ enabled: false })).toMatchObject({ immediate: false, poller: false })
  })

  it('does not find attempts for an event type called constructor', () => {
    expect(resolve({}).maxAttemptsByType['constructor']).toBeUndefined()
  })
})
