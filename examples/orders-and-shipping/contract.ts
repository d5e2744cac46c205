// What both services know: the events between them.
import { defineEvents, event } from 'aftercommit'

/** A test shares its broker with others. */
const prefix = process.env['TOPIC_PREFIX'] ?? ''
export const TOPICS = { orders: `${prefix}orders`, shipments: `${prefix}shipments` } as const

export const orderEvents = defineEvents({
  OrderPlaced: event<{ orderId: number; address: string }>({
    aggregate: 'order',
    key: ({ orderId }) => orderId,
    topic: TOPICS.orders,
  }),
})

export const shippingEvents = defineEvents({
  ShipmentBooked: event<{ orderId: number; carrier: string }>({
    aggregate: 'order',
    key: ({ orderId }) => orderId,
    topic: TOPICS.shipments,
  }),
})
