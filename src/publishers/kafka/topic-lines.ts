// Which producers send a topic. A broker handles the requests of one connection one after another, so a request that waits
// for replicas keeps everything behind it waiting, other topics too. So a topic has producers of its own. There is a limit,
// because each producer connects to each broker; topics beyond it share.
import { ProducerLines, type Connectable } from './producer-lines.ts'

const MAX_TOPICS_APART = 16

export class TopicLines<P extends Connectable> {
  readonly #makeProducer: () => P
  readonly #lines: ProducerLines<P>[]
  readonly #byTopic = new Map<string, ProducerLines<P>>()

  constructor(makeProducer: () => P) {
    this.#makeProducer = makeProducer
    this.#lines = [new ProducerLines(makeProducer)]
  }

  of(topic: string): ProducerLines<P> {
    let lines = this.#byTopic.get(topic)
    if (!lines) this.#byTopic.set(topic, (lines = this.#assign(this.#byTopic.size)))
    return lines
  }

  /** Opens what the first topic will use. */
  connect(): Promise<void> {
    return this.#lines[0]!.connect()
  }

  async disconnect(): Promise<void> {
    await Promise.all(this.#lines.map((lines) => lines.disconnect()))
  }

  #assign(n: number): ProducerLines<P> {
    const place = n % MAX_TOPICS_APART
    return (this.#lines[place] ??= new ProducerLines(this.#makeProducer))
  }
}
