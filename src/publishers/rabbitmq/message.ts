// An event as a message: where it goes, and what travels with it.
import type { Options } from 'amqplib'
import type { WireMessage } from '../envelope/wire-message.ts'
import { withoutText } from '../errors.ts'
import type { OutboxEvent } from '../events.ts'
import { permanent } from './rabbitmq-errors.ts'
import type { PublishFailure } from './publisher.ts'

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

/** RabbitMQ takes these for lists of further routing keys, and text in them for a reason to close the channel. */
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
    // Its words may quote the payload.
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
      `the header '${special}' of '${event.type}' has a meaning of its own in RabbitMQ; use another name`,
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

/** Whole seconds that are not negative are all that AMQP has room for; the header has the exact time. */
function timestampOf({ occurredAt }: OutboxEvent): { timestamp?: number } {
  const seconds = Math.floor(occurredAt.getTime() / 1_000)
  return seconds >= 0 ? { timestamp: seconds } : {}
}

function definedOnly(route: RabbitmqRoute | undefined): RabbitmqRoute {
  const entries = Object.entries(route ?? {}).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries)
}
