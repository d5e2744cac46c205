// Matches acks to events. An ack has a topic, a partition and the offset of its first message; the rest is counting.
import type { RecordMetadata } from 'kafkajs'
import type { Outgoing } from './batch.ts'
import { missingAck } from './errors.ts'
import type { PublishResult } from '../../event/publish-result.ts'

/** Of one topic. `isDivided`: whether each message says its partition, as it does if the partitioner is ours. */
export function matchAcks(
  batch: readonly Outgoing[],
  acks: readonly RecordMetadata[],
  isDivided: boolean,
): PublishResult[] {
  const { topic } = batch[0]!.event
  const ofTopic = acks.filter((ack) => ack.topicName === topic)
  const offsets = new Map(ofTopic.map((ack) => [ack, readOffset(ack)]))
  return batch.map(({ event, message }): PublishResult => {
    const { aggregateId: key } = event
    if (!isDivided && ofTopic.length > 1) {
      return { ok: true, topic, key, partition: null, offset: null }
    }
    const ack = isDivided
      ? ofTopic.find(({ partition }) => partition === message.partition)
      : ofTopic[0]
    if (!ack) return missingAck(topic)
    const offset = offsets.get(ack) ?? null
    if (offset !== null) offsets.set(ack, offset + 1n)
    return { ok: true, topic, key, partition: ack.partition, offset: offset?.toString() ?? null }
  })
}

function readOffset({ baseOffset }: RecordMetadata): bigint | null {
  return baseOffset === undefined ? null : BigInt(baseOffset)
}
