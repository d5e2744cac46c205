// A publisher that answers as its test says, for what no broker can be asked to answer.
import type { OutboxEvent, Publisher, PublishResult } from '../../../src/index.ts'

type Answer = (event: OutboxEvent) => PublishResult | Promise<PublishResult>

export type ScriptedPublisher = Publisher & {
  /** The payloads of each batch it was given, in order. */
  readonly batches: unknown[][]
}

export function scriptedPublisher(
  answer: Answer,
  about: Pick<Publisher, 'timeoutMs' | 'settlesWithinMs' | 'batchSize' | 'orderScope'> = {},
): ScriptedPublisher {
  const batches: unknown[][] = []
  return {
    name: 'scripted',
    ...about,
    batches,
    async publish(events) {
      batches.push(events.map(({ payload }) => JSON.parse(payload) as unknown))
      return await Promise.all(events.map(async (event) => answer(event)))
    },
  }
}

export function acked({ topic, aggregateId: key }: OutboxEvent): PublishResult {
  return { ok: true, topic, key, partition: null, offset: null }
}

export function failedAs(
  kind: 'transient' | 'permanent' | 'rejected' | 'held',
  blames: 'broker' | 'topic' = 'broker',
): PublishResult {
  return { ok: false, kind, blames, error: new Error(`the test says ${kind}`) }
}
