// RabbitMQ through amqplib: persistent messages, publisher confirms, mandatory routing, and a result per event.
// Lanes are sent in parallel. Within one, each event waits for the confirm of the one before it. Otherwise a later
// event already on its way would overtake an earlier one that the broker refuses.
import { performance } from 'node:perf_hooks'
import { type ChannelModel, connect as connectTo } from 'amqplib'
import type { Duration } from '../../checks/duration.ts'
import { type Envelope, resolveEnvelope } from '../../envelope/envelope.ts'
import { writeAll } from '../../envelope/serializer.ts'
import type { WireMessage } from '../../envelope/wire-message.ts'
import { OutboxOptionsError } from '../../errors.ts'
import type { OutboxEvent } from '../../event/event.ts'
import { groupBy } from '../../runtime/group-by.ts'
import { hasMethod, missesBraces, rejectUnknown, requireDuration } from '../../checks/checks.ts'
import { LIFE_SIGN_MS } from './connection.ts'
import { RabbitLink } from './link.ts'
import { type RabbitmqRoute, toMessage } from './message.ts'
import type { PublishFailure, PublishResult } from '../../event/publish-result.ts'
import { type Publisher, type PublishRules, TOOK_TOO_LONG } from '../publisher.ts'

export type { RabbitmqRoute } from './message.ts'

export interface RabbitmqPublisherOptions {
  /** `amqp://user:password@host:5672/vhost`, or `amqps://`. Never appears in logs or errors. */
  url?: string
  /**
   * Instead of `url`: opens a connection, for instance to one of several hosts or with TLS certificates. The publisher
   * calls it again whenever a connection is lost, and closes the connections that it returns. Do not share them with
   * other code, and leave amqplib's own `recovery` off.
   */
  connect?: () => Promise<ChannelModel>
  /** The exchange of events without a route. @default '', where the routing key is the name of a queue */
  exchange?: string
  /** Returns where an event goes. The defaults are `exchange`, and the event's topic as routing key. */
  route?: (event: OutboxEvent) => RabbitmqRoute
  /** How long connecting may take, and opening a channel. @default '10s' */
  connectTimeout?: Duration
  /** How long a confirm may take before the event counts as unsent and is sent again. @default '30s' */
  confirmTimeout?: Duration
  /** The message format: 'headers', 'json', cloudEvents({ source }), or a serializer. @default 'headers' */
  envelope?: Envelope
}

const KNOWN = [
  'url',
  'connect',
  'exchange',
  'route',
  'connectTimeout',
  'confirmTimeout',
  'envelope',
]

const WIRE_RULES = { attributePrefix: 'cloudEvents:', jsonType: 'application/json' } as const

export function rabbitmqPublisher(options: RabbitmqPublisherOptions): Publisher {
  refuseBareUrl(options)
  rejectUnknown('rabbitmqPublisher()', options, KNOWN)
  const { exchange = '', route } = options
  const openMs = requireDuration('connectTimeout', options.connectTimeout ?? '10s', 1)
  const confirmMs = requireDuration('confirmTimeout', options.confirmTimeout ?? '30s', 1)
  if (typeof exchange !== 'string') throw new OutboxOptionsError('exchange must be a string')
  if (route !== undefined && typeof route !== 'function') {
    throw new OutboxOptionsError(
      "route must be a function of the event, e.g. (event) => ({ exchange: 'orders', routingKey: event.type })",
    )
  }
  const write = resolveEnvelope(options.envelope ?? 'headers', WIRE_RULES)
  const link = new RabbitLink(connector(options, openMs), { openMs, confirmMs })

  async function publish(events: readonly OutboxEvent[], rules: PublishRules = {}) {
    const results = new Map<OutboxEvent, PublishResult>()
    const closesAt = performance.now() + confirmMs
    const messages = await writeAll(events, write, confirmMs)
    const written = new Map(events.map((event, n) => [event, messages[n]!]))
    const sendLane = async (lane: readonly OutboxEvent[]) => {
      let failure: PublishFailure | undefined
      for (const event of lane) {
        if (performance.now() > closesAt) failure ??= TOOK_TOO_LONG
        const result: PublishResult = failure
          ? { ...failure, kind: 'held' }
          : await send(event, written.get(event)!)
        results.set(event, result)
        if (!result.ok && holds(result, rules)) failure ??= result
      }
    }
    await Promise.all([...groupBy(events, ({ lane }) => lane).values()].map(sendLane))
    return events.map((event) => results.get(event)!)
  }

  async function send(
    event: OutboxEvent,
    written: WireMessage | PublishFailure,
  ): Promise<PublishResult> {
    if ('ok' in written) return written
    const message = toMessage(event, written, exchange, route)
    if ('ok' in message) return message
    const failure = await link.send(message)
    if (failure) return failure
    return { ok: true, topic: event.topic, key: event.aggregateId, partition: null, offset: null }
  }

  return {
    name: 'rabbitmq',
    system: 'rabbitmq',
    // A batch starts new events for the length of one confirm. The last of them may use every limit in full.
    settlesWithinMs: confirmMs + 3 * openMs + confirmMs + LIFE_SIGN_MS,
    publish,
    connect: () => link.prepare(exchange),
    disconnect: () => link.disconnect(),
  }
}

function refuseBareUrl(given: unknown): void {
  if (typeof given === 'string') throw writeInstead('a string', '{ url }')
  if (given instanceof URL) throw writeInstead('a URL', '{ url: url.href }')
  if (typeof given === 'function') throw writeInstead('a function', '{ connect }')
  if (hasMethod(given, 'createConfirmChannel')) {
    throw writeInstead('a connection', '{ connect: () => amqplib.connect(url) }')
  }
}

function writeInstead(got: string, options: string): OutboxOptionsError {
  return missesBraces('rabbitmqPublisher()', got, `write rabbitmqPublisher(${options})`)
}

function holds({ kind }: PublishFailure, rules: PublishRules): boolean {
  return kind !== 'permanent' || rules.deadLettersHold === true
}

function connector(
  { url, connect }: RabbitmqPublisherOptions,
  timeoutMs: number,
): () => Promise<ChannelModel> {
  if ((url === undefined) === (connect === undefined)) {
    throw new OutboxOptionsError(
      "rabbitmqPublisher() takes either url or connect, e.g. { url: 'amqp://localhost' }",
    )
  }
  if (connect !== undefined) {
    if (typeof connect === 'function') return async () => await connect()
    throw new OutboxOptionsError(
      'connect must be a function that resolves to an amqplib connection',
    )
  }
  if (typeof url !== 'string' || !/^amqps?:\/\//.test(url) || !URL.canParse(url)) {
    throw new OutboxOptionsError(
      "url must be a RabbitMQ URL, such as 'amqp://user:password@host:5672/vhost'",
    )
  }
  // Without noDelay, each event of a lane would wait until the network considers a packet full.
  const socket = { timeout: timeoutMs, noDelay: true, keepAlive: true }
  const clientProperties = { connection_name: 'aftercommit' }
  return async () => await connectTo(url, { ...socket, clientProperties })
}
