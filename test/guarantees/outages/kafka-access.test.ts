// Kafka with TLS and SASL, as it is run where others could listen. What keeps a client out is named as what it is, a
// certificate or credentials, and not as a broker that is away. Events wait meanwhile without using attempts, and go out
// by themselves once the client is let in. A token that expires stops nothing as long as there is a new one.
import { inspect } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { unsignedToken } from '../../support/doubles/bearer-token.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { newEvent, outboxEvent } from '../../support/doubles/sample-events.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { describeWithOwnKafka, useFixture } from '../../support/fixture.ts'
import { firstArrivals, startLoad } from '../../support/load.ts'
import { type Login, SECURE_CLIENTS } from '../../support/secure-clients.ts'
import { type SecureKafka, startSecureKafka } from '../../support/servers/secure-kafka.ts'
import { createTopic, readTopic } from '../../support/servers/topic-reader.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

/** A broker takes ten seconds to start where other work goes on, and making certificates a few more. */
const START_MS = 120_000

/** Nothing here takes too long to be answered, unless the machine is busy. */
const TIMES = {
  threshold: '25s',
  publishTimeout: '10s',
  poller: true,
  pollInterval: '500ms',
} as const

const fixture = useFixture()

describeWithOwnKafka('Kafka with TLS and SASL', () => {
  let kafka: SecureKafka
  beforeAll(async () => {
    kafka = await startSecureKafka()
  }, START_MS)
  afterAll(() => kafka?.stop())

  async function openTopic(): Promise<string> {
    const topic = uniqueName('access')
    await createTopic(kafka.directBrokers, topic)
    return topic
  }

  async function arrivalsOf(topic: string) {
    const reader = await readTopic(kafka.directBrokers, topic)
    try {
      return await reader.readToEnd()
    } finally {
      await reader.stop()
    }
  }

  describe.each(SECURE_CLIENTS)('with $name', ({ publisher: open, onExpiredToken }) => {
    async function publishOne(brokers: string[], ca?: string, login?: Login) {
      const publisher = open(brokers, ca, login)
      const connected = await publisher.connect!().catch((error: unknown) => error)
      const [result] = await publisher.publish([outboxEvent({ topic: await openTopic() })])
      await publisher.disconnect!()
      return { connected, result: result! }
    }

    async function startOutbox(login: Login) {
      const [topic, logger] = [await openTopic(), recordingLogger()]
      const publisher = open(kafka.saslBrokers, kafka.ca, login)
      const outbox = fixture.outbox({ publisher, topic, logger, ...TIMES })
      return { topic, logger, outbox }
    }

    async function allPublished() {
      const waiting = async () =>
        (await fixture.rows()).filter(({ status }) => status !== 'published').length
      await waitUntil(async () => (await waiting()) === 0, { message: 'all events are published' })
    }

    it('publishes over TLS to a broker whose authority it is given', async () => {
      const { connected, result } = await publishOne(kafka.tlsBrokers, kafka.ca)
      expect(connected).toBeUndefined()
      expect(result).toMatchObject({ ok: true })
    })

    it.each([
      ['an authority that it does not know', () => publishOne(kafka.tlsBrokers), /SELF_SIGNED/],
      [
        'a certificate for another name',
        () => publishOne([`localhost:${kafka.tlsPort}`], kafka.ca),
        /ALTNAME_INVALID/,
      ],
    ])('names %s', async (_, attempt, code) => {
      const { connected, result } = await attempt()
      const message = expect.stringMatching(
        new RegExp(`does not accept the certificate of the Kafka broker \\(.*${code.source}`),
      )
      expect(connected).toMatchObject({ code: 'PUBLISH_FAILED', message })
      expect(result).toMatchObject({ kind: 'transient', blames: 'broker', error: { message } })
    })

    it.each(['SCRAM-SHA-256', 'SCRAM-SHA-512'] as const)('logs in with %s', async (mechanism) => {
      const username = uniqueName('user')
      await kafka.setPassword(username, 'open sesame')
      const login = { mechanism, username, password: 'open sesame' }
      const { connected, result } = await publishOne(kafka.saslBrokers, kafka.ca, login)
      expect(connected).toBeUndefined()
      expect(result).toMatchObject({ ok: true })
    })

    it('names a mechanism that the broker does not offer', async () => {
      const login = { mechanism: 'PLAIN', username: 'any', password: 'any' } as const
      const { connected, result } = await publishOne(kafka.saslBrokers, kafka.ca, login)
      const message = expect.stringMatching(/refused the SASL mechanism .*UNSUPPORTED_SASL_MECH/)
      expect(connected).toMatchObject({ message })
      expect(result).toMatchObject({ kind: 'transient', error: { message } })
    })

    it('names a wrong password, keeps the events, and goes on once it is right', async () => {
      const [username, password] = [uniqueName('user'), 'the-right-one']
      await kafka.setPassword(username, 'another')
      const { topic, logger, outbox } = await startOutbox({
        mechanism: 'SCRAM-SHA-256',
        username,
        password,
      })
      const failed = [1, 2, 3].map((n) => nextFailure(n))
      const opened = nextEvent(outbox.events, 'circuit:open')
      await outbox.start()
      await waitUntil(() => logger.lines.some(({ message }) => /connect yet/.test(message)), {
        message: 'the log says that there is no connection',
      })
      await outbox.withOutbox((_, emit) => {
        for (const payload of [1, 2, 3]) emit(newEvent({ payload }))
      })
      const refused = /^Kafka refused the credentials: .* SASL mechanism SCRAM-SHA-256/
      expect((await opened).error.message).toMatch(refused)
      await Promise.all(failed)
      const { flags } = await outbox.health()
      expect(flags.map(({ message }) => message)).toEqual([
        expect.stringMatching(/^sends to the broker .* have failed .*refused the credentials/),
      ])
      for (const row of await fixture.rows()) {
        expect(row).toMatchObject({ status: 'pending', attempts: 0 })
        expect(row.last_error).toMatch(/Kafka refused the credentials/)
      }
      expect(warningsOf(logger)).toEqual([
        ['could not connect yet; events wait in the table', expect.stringMatching(refused)],
        ['sends to a destination fail, circuit opened', expect.stringMatching(refused)],
      ])
      expect(inspect([logger.lines, flags], { depth: null })).not.toMatch(
        /out of reach|the-right-one/,
      )

      const closed = nextEvent(outbox.events, 'circuit:closed')
      await kafka.setPassword(username, password)
      await closed
      await allPublished()
      expect((await fixture.rows()).map(({ attempts }) => attempts)).toEqual([0, 0, 0])
      expect(await arrivalsOf(topic)).toHaveLength(3)

      function nextFailure(nth: number) {
        let seen = 0
        return nextEvent(outbox.events, 'event:failed', () => (seen += 1) === nth)
      }
    })

    it('goes on over tokens that expire, and neither loses nor doubles an event', async () => {
      let tokens = 0
      const { topic, logger, outbox } = await startOutbox({
        mechanism: 'OAUTHBEARER',
        token: async () => {
          tokens += 1
          return unsignedToken('shop', 2.5)
        },
      })
      await outbox.start()
      const load = startLoad([outbox], 'order')
      try {
        await waitUntil(() => tokens >= 4, { message: () => `four tokens, got ${tokens}` })
        await load.commits(10)
      } finally {
        await load.stop()
      }
      await allPublished()
      const messages = await arrivalsOf(topic)
      expect(firstArrivals(messages)).toEqual(load.committed)
      expect(messages).toHaveLength([...load.committed.values()].flat().length)
      expect((await fixture.rows()).every(({ attempts }) => attempts === 0)).toBe(true)
      expect(warningsOf(logger).filter(([, text]) => /credentials/.test(text))).toEqual([])
    })

    it('names a token that has expired, and goes on with one that has not', async () => {
      const expired = unsignedToken('shop', -60)
      let token = expired
      const { topic, logger, outbox } = await startOutbox({
        mechanism: 'OAUTHBEARER',
        token: async () => token,
      })
      const opened = nextEvent(outbox.events, 'circuit:open')
      await outbox.start()
      await outbox.withOutbox((_, emit) => emit(newEvent()))
      expect((await opened).error.message).toMatch(onExpiredToken)
      expect(inspect(logger.lines, { depth: null })).not.toContain(expired)
      const closed = nextEvent(outbox.events, 'circuit:closed')
      token = unsignedToken('shop', 60)
      await closed
      await allPublished()
      expect((await fixture.rows()).map(({ attempts }) => attempts)).toEqual([0])
      expect(await arrivalsOf(topic)).toHaveLength(1)
    })
  })
})

function warningsOf({ lines }: ReturnType<typeof recordingLogger>): [string, string][] {
  const warnings = lines.filter(({ level }) => level === 'warn' || level === 'error')
  return warnings.map(({ message, fields }) => {
    return [message, (fields as { err?: Error }).err?.message ?? '']
  })
}
