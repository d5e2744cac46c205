// @platformatic/kafka, with its acks noted. Only the contenders named after it import this file, so that no other process
// has the client in its memory.
import { Producer, stringSerializers } from '@platformatic/kafka'
import { messageOf, type Sender, type Stage } from './contender.ts'

type Send = Producer<string, string, string, string>['send']
type SendOptions = Parameters<Send>[0]

/**
 * How to connect. Our publisher makes its producers itself, so acks are noted in the send() of their class: as late, and
 * for as little, as around a producer of kafkajs. Both contenders have to find the same copy of the client for that.
 */
export function measuredClient({ brokers, acks }: Stage) {
  const { prototype } = Producer
  const send = prototype.send as (options: SendOptions) => ReturnType<Send>
  prototype.send = async function (this: Producer, options: SendOptions) {
    const result = await send.call(this, options)
    acks.note(options.messages as { headers?: Record<string, string> }[])
    return result
  } as typeof prototype.send
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
      producer.send({ acks: -1, messages: events.map((event) => ({ topic, ...messageOf(event) })) }),
    disconnect: () => producer.close(),
  }
}
