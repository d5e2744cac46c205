// Kafka refuses a token in two steps: first a text without an error code, to which the client should reply. The client
// treats that text as a success unless it has a validator, and the next request fails with an error that does not explain why.
// Its own validator calls back twice, as refused and as accepted; hence this one.
import type { ProducerOptions } from '@platformatic/kafka'

type Sasl = NonNullable<ProducerOptions<string, string | Buffer, string, string>['sasl']>
type Validator = NonNullable<Sasl['authBytesValidator']>

/** The options for SASL, with a validator where one is missing. */
export function recognizeTokenRefusal(sasl: Sasl): Sasl {
  return sasl.mechanism === 'OAUTHBEARER' ? { authBytesValidator: validate, ...sasl } : sasl
}

const validate: Validator = (authBytes, callback) => {
  const status = readStatus(authBytes)
  callback(status === undefined ? null : new Error(status), authBytes)
}

/** The status of a refusal (RFC 7628), such as `invalid_token`. Some brokers send other texts with a success. */
function readStatus(authBytes: Buffer): string | undefined {
  try {
    const said: unknown = JSON.parse(authBytes.toString())
    const { status } = said as { status?: unknown }
    return typeof status === 'string' ? status : undefined
  } catch {
    return undefined
  }
}
