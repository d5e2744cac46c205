// @platformatic/kafka, with its acks noted. Only the contenders named after it import this file, so that no other process
// has the client in its memory.
import { Producer, stringSerializers } from '@platformatic/kafka'
import type { Sent } from './acks.ts'
import { messageOf, type Sender, type Stage } from './contender.ts'

type SendOptions = Parameters<Producer<string, string, string, string>['send']>[0]

interface Sending {
  send: (this: unknown, options: SendOptions) => Promise<unknown>
}

/**
 * How to connect. Our publisher makes its producers itself, so acks are noted in the send() of their class: as late, and
 * for as little, as around a producer of kafkajs. Both contenders have to find the same copy of the client for that.
 */
export function measuredClient({ brokers, acks }: Stage) {
  const prototype = Producer.prototype as unknown as Sending
  const { send } = prototype
  prototype.send = async function (options) {
    const result = await send.call(this, options)
    acks.note(options.messages as Sent[])
    return result
  }
  return { clientId: 'bench', bootstrapBrokers: [...brokers] }
}

export function platformaticSender(stage: Stage): Sender {
  const { topic } = stage
  const producer = new Producer({ ...measuredClient(stage), serializers: stringSerializers })
  return {
    async connect() {
      await producer.metadata({ topics: [topic] })
    },
    send: (events) =>
      producer.send({
        acks: -1,
        messages: events.map((event) => ({ topic, ...messageOf(event) })),
      }),
    disconnect: () => producer.close(),
  }
}
