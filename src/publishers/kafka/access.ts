// Finds out whether credentials or a certificate keep a client out. Kafka responds, so this is not an outage.
// It is not the fault of an event either: events wait until a setting changes, in the application or on the broker.
// The texts never include a password or a token; they quote only Kafka's or Node's own message.
import { PublishError, toError } from '../../errors.ts'

export interface Obstacle {
  readonly message: string
  /** Whether a new connection may get in with the same settings. */
  readonly mayPass: boolean
}

/** What is read of the errors of both clients. */
interface ClientError extends Error {
  readonly code?: unknown
  readonly errors?: readonly unknown[]
  /** The protocol's name for the error: in kafkajs, then in @platformatic/kafka. */
  readonly type?: unknown
  readonly apiId?: unknown
  /** Set by @platformatic/kafka: what the broker wrote. */
  readonly serverErrorMessage?: unknown
}

// Kafka also refuses this way when a request overtakes the new login of its connection. Then a new connection gets in.
const WRONG_STATE =
  'Kafka refused the credentials (ILLEGAL_SASL_STATE): the token is not valid or has expired, its lifetime is shorter than the reauthenticationThreshold of kafkajs, or the listener does not use SASL'

const WRONG_MECHANISM =
  "Kafka refused the SASL mechanism of the client (UNSUPPORTED_SASL_MECHANISM); use one of the broker's sasl.enabled.mechanisms"

const CLIENT_CERTIFICATE =
  'the Kafka broker did not accept the certificate of the client, or demands one; pass cert and key in the TLS options of the client'

/** Returns what keeps the client out, or undefined if the error is about something else. */
export function findObstacle(error: Error): Obstacle | undefined {
  const causes = [...causesOf(error)]
  const has = (name: string) => causes.some(({ type, apiId }) => type === name || apiId === name)
  if (has('UNSUPPORTED_SASL_MECHANISM')) return { message: WRONG_MECHANISM, mayPass: false }
  if (has('ILLEGAL_SASL_STATE')) return { message: WRONG_STATE, mayPass: true }
  for (const cause of causes) {
    const obstacle = ofCertificate(cause) ?? ofKafkajs(cause) ?? ofPlatformatic(cause)
    if (obstacle) return obstacle
  }
  return undefined
}

/** The error of a failed connect, in the words of a failed send. */
export function explainConnect(thrown: unknown): Error {
  const error = toError(thrown)
  const obstacle = findObstacle(error)
  return obstacle ? new PublishError('PUBLISH_FAILED', obstacle.message, { cause: error }) : error
}

function* causesOf(error: unknown): Generator<ClientError> {
  if (!(error instanceof Error)) return
  yield error
  yield* causesOf(error.cause)
  for (const one of (error as ClientError).errors ?? []) yield* causesOf(one)
}

/** Node's codes, which both clients keep. */
function ofCertificate({ code, message }: ClientError): Obstacle | undefined {
  if (typeof code !== 'string' || !/CERT|^UNABLE_TO_VERIFY/.test(code)) return undefined
  if (code.includes('_ALERT_'))
    return { message: `${CLIENT_CERTIFICATE} (${code})`, mayPass: false }
  const said = message.replace(/^Connection error: /, '')
  return {
    message: `the client does not accept the certificate of the Kafka broker (${code}): ${said}; ${certificateRemedy(code)}`,
    mayPass: false,
  }
}

function certificateRemedy(code: string): string {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'connect with a name in the certificate'
  if (/EXPIRED|NOT_YET/.test(code)) return 'renew the certificate, or correct the clock'
  return 'pass the authority that signed it as ca in the TLS options of the client'
}

// kafkajs has one error for a refusal and for a connection that ended during the login, and drops the cause.
function ofKafkajs({ name, message }: ClientError): Obstacle | undefined {
  if (name !== 'KafkaJSSASLAuthenticationError') return undefined
  const [, said] = /authentication failed: (.*)$/s.exec(message) ?? []
  if (said === undefined) return noLogin(message)
  if (/^(Closed |Connection |Failed to connect|Not connected|Request )/.test(said)) {
    return brokenOff(said)
  }
  return refused(said)
}

function ofPlatformatic(error: ClientError): Obstacle | undefined {
  if (error.code !== 'PLT_KFK_AUTHENTICATION') return undefined
  const causes = [...causesOf(error)].slice(1)
  const broken = causes.find(({ code }) => code === 'PLT_KFK_NETWORK')
  if (broken) return brokenOff(broken.message)
  // The client's own complaints, such as a provider that threw, have texts of their own.
  if (error.message !== 'SASL authentication failed.') return noLogin(error.message)
  const texts = causes.map(({ serverErrorMessage }) => serverErrorMessage)
  const said = texts.find((text) => typeof text === 'string')
  return refused(said ?? causes.at(-1)?.message ?? error.message)
}

function refused(said: string): Obstacle {
  return {
    message: `Kafka refused the credentials: ${said}; correct them in the client or on the broker`,
    mayPass: false,
  }
}

function noLogin(said: string): Obstacle {
  return { message: `the client could not log in to Kafka: ${said}`, mayPass: false }
}

function brokenOff(said: string): Obstacle {
  return { message: `the connection ended while the client logged in: ${said}`, mayPass: true }
}
