import type { Kafka, Message } from 'kafkajs'
import kafkajs from 'kafkajs'
import { expect, it } from 'vitest'
import { explainConnect, findObstacle } from '../../../../src/publishers/kafka/access.ts'
import { kafkaPublisher } from '../../../../src/publishers/kafka/kafka-publisher.ts'
import { outboxEvent } from '../../../support/doubles/sample-events.ts'

const ofKafkajs = (message: string) =>
  Object.assign(new Error(message), { name: 'KafkaJSSASLAuthenticationError' })
const ofPlatformatic = (message: string, cause?: Error) =>
  Object.assign(new Error(message, { cause }), { code: 'PLT_KFK_AUTHENTICATION' })
const withCode = (code: string, message = 'from Node') =>
  Object.assign(new Error(message), { code })

it.each([
  [withCode('CERT_HAS_EXPIRED'), /\(CERT_HAS_EXPIRED\): from Node; renew the certificate/],
  [withCode('UNABLE_TO_VERIFY_LEAF_SIGNATURE'), /; pass the authority/],
  [withCode('UNABLE_TO_GET_ISSUER_CERT_LOCALLY'), /; pass the authority/],
  [
    withCode('DEPTH_ZERO_SELF_SIGNED_CERT', 'Connection error: self-signed'),
    /: self-signed; pass the authority/,
  ],
  [withCode('ERR_TLS_CERT_ALTNAME_INVALID'), /; connect with a name in the certificate/],
  [
    withCode('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'),
    /did not accept the certificate of the client, or demands one/,
  ],
])('names what is wrong with a certificate: %s', (error, message) => {
  const wrapped = new Error('somewhere above', { cause: error })
  expect(findObstacle(wrapped)).toEqual({
    message: expect.stringMatching(message),
    mayPass: false,
  })
})

it.each([
  [ofKafkajs('SASL PLAIN authentication failed: no such user'), /the credentials: no such user;/],
  [ofKafkajs('SASL Plain: Invalid username or password'), /could not log in to Kafka: SASL Plain/],
  [
    ofPlatformatic('SASL authentication failed.', new Error('invalid_token')),
    /refused the credentials: invalid_token;/,
  ],
  [
    ofPlatformatic('The SASL/OAUTHBEARER token provider threw an error.', new Error('secret')),
    /^the client could not log in to Kafka: The SASL\/OAUTHBEARER token provider threw an error\.$/,
  ],
])('names credentials: %s', (error, message) => {
  expect(findObstacle(error)).toEqual({ message: expect.stringMatching(message), mayPass: false })
})

it.each([
  ofKafkajs('SASL SCRAM SHA256 authentication failed: Closed connection'),
  ofKafkajs('SASL PLAIN authentication failed: Connection error: read ECONNRESET'),
  ofKafkajs('SASL PLAIN authentication failed: Request SaslAuthenticate(key: 36) timed out'),
  ofPlatformatic('SASL authentication failed.', withCode('PLT_KFK_NETWORK', 'Connection closed')),
  ofPlatformatic('Cannot find a suitable SASL mechanism.', withCode('PLT_KFK_NETWORK', 'Closed')),
])('does not blame the credentials when the connection ended during the login: %s', (error) => {
  const message = expect.stringMatching(/^the connection ended while the client logged in: /)
  expect(findObstacle(error)).toEqual({ message, mayPass: true })
})

it('leaves other errors as they are', () => {
  const away = withCode('ECONNREFUSED', 'connect ECONNREFUSED 127.0.0.1:9092')
  expect(findObstacle(new Error('failed', { cause: away }))).toBeUndefined()
  expect(explainConnect(away)).toBe(away)
})

/** A producer of kafkajs's shape that asks for the partition and acks, unless it is to fail. */
function scriptedKafka(failures: Error[]) {
  let producers = 0
  const producer: Kafka['producer'] = (config) => {
    producers += 1
    const choose = config!.createPartitioner!()
    const fake = {
      connect: async () => {},
      disconnect: async () => {},
      async sendBatch({
        topicMessages,
      }: {
        topicMessages: { topic: string; messages: Message[] }[]
      }) {
        const failure = failures.shift()
        if (failure) throw failure
        const [{ topic, messages }] = topicMessages as [(typeof topicMessages)[number]]
        const one = { partitionErrorCode: 0, partitionId: 0, leader: 1, replicas: [], isr: [] }
        for (const message of messages) choose({ topic, partitionMetadata: [one], message })
        return [{ topicName: topic, partition: 0, errorCode: 0, baseOffset: '7' }]
      },
    }
    return fake as unknown as ReturnType<Kafka['producer']>
  }
  return { producer, count: () => producers }
}

const overtaken = () =>
  new kafkajs.KafkaJSProtocolError({
    message: 'from the broker',
    type: 'ILLEGAL_SASL_STATE',
  } as never)

it('sends again over a new connection what overtook the new login of the old one', async () => {
  const kafka = scriptedKafka([overtaken()])
  const publisher = kafkaPublisher({ kafka })
  expect(await publisher.publish([outboxEvent()])).toMatchObject([{ ok: true, offset: '7' }])
  expect(kafka.count()).toBe(2)
})

it('blames the credentials when a new connection does not get in either', async () => {
  const kafka = scriptedKafka([overtaken(), overtaken()])
  const publisher = kafkaPublisher({ kafka })
  expect(await publisher.publish([outboxEvent()])).toMatchObject([
    { kind: 'transient', error: { message: expect.stringMatching(/^Kafka refused the cred/) } },
  ])
})
