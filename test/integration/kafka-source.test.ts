// A machine without Java and Docker: where Kafka is demanded that is a failure, elsewhere a reason to skip.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { explainMissingOwnKafka, resolveKafka } from '../support/servers/kafka-source.ts'

beforeEach(() => {
  vi.stubEnv('PATH', '/nowhere')
  vi.stubEnv('KAFKA_BROKERS', '')
  vi.stubEnv('CI', '')
  vi.stubEnv('KAFKA_REQUIRED', '')
})
afterEach(() => {
  vi.unstubAllEnvs()
})

it('gives the reason to skip, by name', async () => {
  expect(await explainMissingOwnKafka()).toMatch(/^java is not installed/)
  expect(await resolveKafka()).toEqual({
    server: null,
    missing: expect.stringMatching(/^java is not installed.*; install Java 17/),
  })
})

describe.each(['CI', 'KAFKA_REQUIRED'])('with %s=true', (variable) => {
  it('fails, and says what to install', async () => {
    vi.stubEnv(variable, 'true')
    await expect(explainMissingOwnKafka()).rejects.toThrow(/java is not installed/)
    await expect(resolveKafka()).rejects.toThrow(/^Kafka is missing: java is not installed/)
  })
})
