// Turns an event into a RabbitMQ message: its exchange, routing key, content and properties.
import type { Options } from 'amqplib'
import type { WireMessage } from '../../envelope/wire-message.ts'
import { withoutText } from '../../errors.ts'
import type { OutboxEvent } from '../../event/event.ts'
import { permanent } from './errors.ts'
import type { PublishFailure } from '../../event/publish-result.ts'

export interface RabbitmqRoute {
  /** @default the option `exchange` */
  readonly exchange?: string
  /** @default the topic of the event */
  readonly routingKey?: string
}

export interface RabbitMessage {
  readonly id: string
  readonly exchange: string
  readonly routingKey: string
  readonly content: Buffer
  readonly properties: Options.Publish
}

/** RabbitMQ reads these headers as lists of further routing keys, and closes the channel if they hold text. */
const SPECIAL_HEADERS = ['CC', 'BCC']

export function toMessage(
  event: OutboxEvent,
  { value, headers, contentType }: WireMessage,
  exchange: string,
  route: ((event: OutboxEvent) => RabbitmqRoute) | undefined,
): RabbitMessage | PublishFailure {
  let target: RabbitmqRoute | undefined
  try {
    target = route ? route(event) : {}
  } catch (thrown) {
    // The message may quote the payload.
    const error = withoutText(thrown)
    return permanent(`the route of '${event.type}' failed with ${error.name}`, error)
  }
  const place = { exchange, routingKey: event.topic, ...definedOnly(target) }
  if (typeof place.exchange !== 'string' || typeof place.routingKey !== 'string') {
    return permanent(
      `the route of '${event.type}' must be an object with exchange and routingKey, each a string or left out`,
    )
  }
  const special = SPECIAL_HEADERS.find((name) => name in headers)
  if (special) {
    return permanent(
      `the header '${special}' of '${event.type}' has a special meaning in RabbitMQ; use another name`,
    )
  }
  return {
    ...place,
    id: event.id,
    content: typeof value === 'string' ? Buffer.from(value) : value,
    properties: {
      mandatory: true,
      persistent: true,
      ...(contentType !== undefined && { contentType }),
      messageId: event.id,
      type: event.type,
      headers,
      ...timestampOf(event),
    },
  }
}

/** AMQP timestamps are whole, non-negative seconds. A header carries the exact time. */
function timestampOf({ occurredAt }: OutboxEvent): { timestamp?: number } {
  const seconds = Math.floor(occurredAt.getTime() / 1_000)
  return seconds >= 0 ? { timestamp: seconds } : {}
}

function definedOnly(route: RabbitmqRoute | undefined): RabbitmqRoute {
  const entries = Object.entries(route ?? {}).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries)
}
