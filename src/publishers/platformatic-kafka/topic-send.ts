// Sends the events of one topic: one request to each broker, for all partitions that it leads, and a result for each
// partition. A broker that hangs costs the others nothing: each request is a send of its own. What a partition refuses is
// sent again without the others: halved until the event to blame is found, or repeated while its leader moves. So the
// client's own retries are off: they would send again what other partitions have written, and after stale metadata they
// send a whole request to the leader of its first partition.
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { Producer } from '@platformatic/kafka'
import { toError } from '../../errors.ts'
import { groupBy } from '../../runtime/group-by.ts'
import { findObstacle } from '../kafka/access.ts'
import type { KafkaBatch, Outgoing } from '../kafka/batch.ts'
import { chunksOf } from '../kafka/chunks.ts'
import { classifyProtocolError, missingAck, refusesTopic } from '../kafka/errors.ts'
import type { ProducerLines } from '../kafka/producer-lines.ts'
import { TOOK_TOO_LONG } from '../publisher.ts'
import {
  type Answer,
  isTimeout,
  type PartitionAnswer,
  protocolName,
  readFailure,
  readSuccess,
} from './answer.ts'
import { limit } from './limit.ts'

export type TextProducer = Producer<string, string | Buffer, string, string>

/** One of the publisher's own producers. */
export interface Line {
  readonly producer: TextProducer
  connect(): Promise<unknown>
  disconnect(): Promise<unknown>
}

export interface TopicSendParts {
  readonly lines: ProducerLines<Line>
  /** The partition of a key, given how many there are. */
  readonly choose: (key: string, partitions: number) => number
  /** How often a partition is tried again while its leader moves. */
  readonly retries: number
  readonly maxRequestBytes: number
  readonly requestTimeoutMs: number
}

/** What is left for one partition. Its requests go one after another, or one might overtake another that failed. */
interface Part {
  readonly partition: number
  chunks: (readonly Outgoing[])[]
  /** How often its first chunk has been tried again. */
  repeats: number
}

/** The first chunk of a partition, under way. */
interface Head {
  readonly part: Part
  readonly chunk: readonly Outgoing[]
}

/** One request, and its result. */
interface Sent {
  readonly heads: readonly Head[]
  readonly answer: Answer
}

const FIRST_REST_MS = 100
const LONGEST_REST_MS = 1_000

const NO_LEADER: Answer = readFailure(
  Object.assign(new Error('the partition has no leader'), { apiId: 'LEADER_NOT_AVAILABLE' }),
)

export class TopicSend {
  readonly #topic: string
  readonly #batch: KafkaBatch
  readonly #parts: TopicSendParts
  readonly #closings: number

  constructor(topic: string, batch: KafkaBatch, parts: TopicSendParts) {
    this.#topic = topic
    this.#batch = batch
    this.#parts = parts
    this.#closings = parts.lines.closings
  }

  async run(outgoing: readonly Outgoing[]): Promise<void> {
    // Until the number of partitions is known, everything waits for one that does not exist.
    let left: Part[] = [{ partition: -1, chunks: [outgoing], repeats: 0 }]
    while (left.length > 0) {
      const rests = Math.max(...left.map(({ repeats }) => repeats))
      if (rests > 0) await delay(Math.min(LONGEST_REST_MS, FIRST_REST_MS * 2 ** (rests - 1)))
      left = (await this.#sendFirst(left)).filter(({ chunks }) => chunks.length > 0)
    }
  }

  /** Sends the first chunk of each part. Returns the parts, with what is left of them. */
  async #sendFirst(parts: readonly Part[]): Promise<readonly Part[]> {
    if (performance.now() > this.#batch.closesAt) {
      for (const { chunks } of parts) this.#batch.hold(chunks.flat(), TOOK_TOO_LONG)
      return []
    }
    let divided = parts
    let sent: Sent[]
    let distrustLine: (() => void) | undefined
    try {
      sent = await this.#parts.lines.use(async ({ producer }, distrust) => {
        distrustLine = distrust
        const leaders = await this.#findLeaders(producer)
        divided = parts[0]!.partition === -1 ? this.#divide(parts[0]!, leaders.length) : parts
        const sends = await this.#request(producer, this.#takeHeads(divided), leaders)
        if (sends.some(({ answer }) => answer.isSilent)) distrust()
        return sends
      })
    } catch (thrown) {
      // Not even the leaders are known.
      if (isTimeout(toError(thrown))) distrustLine?.()
      sent = [{ heads: this.#takeHeads(divided), answer: readFailure(thrown) }]
    }
    for (const { heads, answer } of sent) {
      for (const head of heads) this.#settle(head, answer.of(head.part.partition))
    }
    return divided
  }

  #takeHeads(parts: readonly Part[]): Head[] {
    return parts.flatMap((part) => {
      const chunk = this.#batch.admit(part.chunks.shift()!)
      return chunk.length > 0 ? [{ part, chunk }] : []
    })
  }

  /** The leader of each partition; null where it cannot be reached. */
  async #findLeaders(producer: TextProducer): Promise<(number | null)[]> {
    const metadata = producer.metadata({ topics: [this.#topic] })
    const { brokers, topics } = await limit(
      'the request for metadata',
      this.#parts.requestTimeoutMs,
      metadata,
    )
    return topics
      .get(this.#topic)!
      .partitions.map(({ leader }) => (brokers.has(leader) ? leader : null))
  }

  #divide({ chunks }: Part, partitions: number): Part[] {
    const { choose, maxRequestBytes } = this.#parts
    const byPartition = groupBy(chunks.flat(), ({ event, message }) => {
      return (message.partition = choose(event.aggregateId, partitions))
    })
    return [...byPartition].map(([partition, ofOne]) => {
      return { partition, chunks: chunksOf(ofOne, maxRequestBytes), repeats: 0 }
    })
  }

  /** Never rejects. */
  async #request(
    producer: TextProducer,
    heads: readonly Head[],
    leaders: readonly (number | null)[],
  ): Promise<Sent[]> {
    const byLeader = groupBy(heads, ({ part }) => leaders[part.partition] ?? null)
    const sent = await Promise.all(
      [...byLeader].map(async ([leader, ofOne]) => {
        // Version 1 throws where nothing can catch it if the leader of a partition is not among the brokers.
        const answer = leader === null ? NO_LEADER : await this.#produce(producer, ofOne)
        return { heads: ofOne, answer }
      }),
    )
    if (sent.some(({ answer }) => !answer.isComplete)) producer.clearMetadata()
    return sent
  }

  async #produce(producer: TextProducer, heads: readonly Head[]): Promise<Answer> {
    const topic = this.#topic
    const messages = heads.flatMap(({ chunk }) =>
      chunk.map(({ message }) => {
        return { ...message, topic, timestamp: BigInt(message.timestamp) }
      }),
    )
    try {
      const sending = producer.send({ messages, acks: -1 })
      return readSuccess(await limit('the request', this.#parts.requestTimeoutMs, sending))
    } catch (thrown) {
      return readFailure(thrown)
    }
  }

  #settle({ part, chunk }: Head, answer: PartitionAnswer): void {
    const [batch, topic] = [this.#batch, this.#topic]
    if (answer !== 'missing' && 'offset' in answer) {
      const { partition } = part
      for (const [n, outgoing] of chunk.entries()) {
        const { aggregateId: key } = outgoing.event
        const offset = String(answer.offset + BigInt(n))
        batch.conclude(outgoing, { ok: true, topic, key, partition, offset })
      }
      part.repeats = 0
      return
    }
    const error = answer === 'missing' ? null : answer.error
    const type = error ? protocolName(error) : ''
    const failure = error ? classifyProtocolError(topic, error, type) : missingAck(topic)
    const isOpen = this.#parts.lines.closings === this.#closings
    const mayPass = error && isOpen && !isTimeout(error) && findObstacle(error)?.mayPass !== false
    if (failure.kind === 'transient' && part.repeats < this.#parts.retries && mayPass) {
      part.repeats += 1
      part.chunks.unshift(chunk)
      return
    }
    // A broker writes or refuses what it gets for one partition as a whole.
    if (failure.kind === 'permanent' && chunk.length > 1 && !refusesTopic(type)) {
      const middle = Math.ceil(chunk.length / 2)
      part.chunks.unshift(chunk.slice(0, middle), chunk.slice(middle))
      return
    }
    for (const outgoing of chunk) batch.conclude(outgoing, failure)
    if (failure.kind !== 'transient') return
    batch.hold(part.chunks.flat(), failure)
    part.chunks = []
  }
}
