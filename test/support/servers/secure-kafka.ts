// A real single-node Kafka with a listener for TLS and one for TLS with SASL: SCRAM, whose users tests add and change,
// and OAUTHBEARER, with Kafka's own validator for unsigned tokens. That validator checks the subject and the times of a
// token and no signature, so it is for tests alone. The plain listeners stay for the reader that checks what arrived.
import { pbkdf2Sync, randomBytes } from 'node:crypto'
import { alterUserScramCredentialsV0, Connection, ScramMechanisms } from '@platformatic/kafka'
import { type Certificates, makeCertificates } from './certificates.ts'
import { findFreePort } from './free-port.ts'
import { startKafka } from './kafka-server.ts'
import { createOwnedFolder } from './owned-folder.ts'

export type SecureKafka = {
  /** The certificate of the authority that signed the broker's, as PEM. */
  readonly ca: string
  /** Port of the listener with TLS alone; its certificate is for 127.0.0.1 only. */
  readonly tlsPort: number
  readonly tlsBrokers: string[]
  /** TLS with SASL: SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER. */
  readonly saslBrokers: string[]
  /** Without TLS and SASL. */
  readonly directBrokers: string[]
  /** Adds a user for both kinds of SCRAM, or changes the password. Holds for connections from then on. */
  setPassword(user: string, password: string): Promise<void>
  stop(): Promise<void>
}

const SCRAM = [
  { mechanism: ScramMechanisms.SCRAM_SHA_256, digest: 'sha256', bytes: 32 },
  { mechanism: ScramMechanisms.SCRAM_SHA_512, digest: 'sha512', bytes: 64 },
]
const ITERATIONS = 4_096

export async function startSecureKafka(): Promise<SecureKafka> {
  const folder = await createOwnedFolder('aftercommit-certificates-')
  try {
    const [tlsPort, saslPort] = [await findFreePort(), await findFreePort()]
    const certificates = await makeCertificates(folder)
    const kafka = await startKafka({
      extraListeners: {
        TLS: { protocol: 'SSL', port: tlsPort },
        SASL: { protocol: 'SASL_SSL', port: saslPort },
      },
      settings: securitySettings(certificates),
    })
    const { directBrokers } = kafka
    return {
      ca: certificates.ca,
      tlsPort,
      tlsBrokers: [`127.0.0.1:${tlsPort}`],
      saslBrokers: [`127.0.0.1:${saslPort}`],
      directBrokers,
      setPassword: (user, password) => setPassword(directBrokers[0]!, user, password),
      async stop() {
        await kafka.stop()
        await folder.remove()
      },
    }
  } catch (error) {
    await folder.remove()
    throw error
  }
}

function securitySettings({ keystore, password }: Certificates): Record<string, string> {
  const module = 'org.apache.kafka.common.security'
  const scram = `${module}.scram.ScramLoginModule required;`
  return {
    'ssl.keystore.type': 'PKCS12',
    'ssl.keystore.location': keystore,
    'ssl.keystore.password': password,
    'listener.name.sasl.sasl.enabled.mechanisms': 'SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER',
    'listener.name.sasl.scram-sha-256.sasl.jaas.config': scram,
    'listener.name.sasl.scram-sha-512.sasl.jaas.config': scram,
    'listener.name.sasl.oauthbearer.sasl.jaas.config': `${module}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";`,
  }
}

async function setPassword(broker: string, name: string, password: string): Promise<void> {
  const [host, port] = broker.split(':') as [string, string]
  const connection = new Connection('test')
  await connection.connect(host, Number(port))
  try {
    // A request may name a user only once.
    for (const { mechanism, digest, bytes } of SCRAM) {
      const salt = randomBytes(16)
      const saltedPassword = pbkdf2Sync(password, salt, ITERATIONS, bytes, digest)
      const upsertion = { name, mechanism, iterations: ITERATIONS, salt, saltedPassword }
      await alterUserScramCredentialsV0.api.async(connection, [], [upsertion])
    }
  } finally {
    await connection.close()
  }
}
