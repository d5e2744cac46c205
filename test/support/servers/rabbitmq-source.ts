// Decides where the tests find RabbitMQ: a server named in RABBITMQ_URL, one on the usual local port, or none. On
// CI none is a failure, so that a green run never means "not tested".
import { connect } from 'amqplib'
import { isContinuousIntegration } from '../run/continuous-integration.ts'

export type ResolvedRabbit = { url: string; missing: null } | { url: null; missing: string }

const usual = 'amqp://guest:guest@127.0.0.1:5672'
const remedy = 'start RabbitMQ on port 5672 or set RABBITMQ_URL=amqp://user:password@host'

export async function resolveRabbit(): Promise<ResolvedRabbit> {
  const named = process.env['RABBITMQ_URL']
  const refusal = await tryToConnect(named ?? usual)
  if (refusal === null) return { url: named ?? usual, missing: null }
  const where = named ? 'the server of RABBITMQ_URL' : 'no server on the usual local port'
  const missing = `${where}: ${refusal}; ${remedy}`
  if (named || isContinuousIntegration()) throw new Error(`RabbitMQ is missing: ${missing}`)
  return { url: null, missing }
}

async function tryToConnect(url: string): Promise<string | null> {
  try {
    const connection = await connect(url, { timeout: 5_000 })
    await connection.close()
    return null
  } catch (error) {
    return String(error)
  }
}
