// The stack for a test file, and readers of topics that stop with their test.
import { afterAll, afterEach, beforeAll, describe, inject } from 'vitest'
import { uniqueName } from '../doubles/unique-name.ts'
import { kafkaBrokers } from '../fixture.ts'
import { chosenPostgres } from '../servers/server-versions.ts'
import { createTopic, readTopic, type TopicReader } from '../servers/topic-reader.ts'
import { type CdcStack, createCdcStack, type StackOptions } from './stack.ts'

/** A suite that publishes rows by a condition, which Postgres 14 cannot. */
export const describeWithFilters = describe.skipIf(Number(chosenPostgres()) < 15)

/** A suite that starts Kafka Connect, for which it needs Java. */
export const describeWithConnector = describe.skipIf(
  Number(chosenPostgres()) < 15 || inject('ownKafkaMissing') !== null,
)

/** The first start of a checkout fetches the jars. */
const FETCHING_MS = 300_000

export type CdcFixture = {
  readonly stack: CdcStack
  /** A topic of its own, with a reader from its beginning. */
  topic(): Promise<{ topic: string; reader: TopicReader }>
}

export function useCdc(options: StackOptions = {}): CdcFixture {
  let stack: CdcStack
  const readers: TopicReader[] = []
  beforeAll(async () => {
    stack = await createCdcStack(kafkaBrokers(), options)
    await stack.startConnector()
  }, FETCHING_MS)
  afterEach(async () => {
    await Promise.all(readers.splice(0).map((reader) => reader.stop()))
    await stack.stopOutboxes()
  })
  afterAll(() => stack.stop())
  return {
    get stack() {
      return stack
    },
    async topic() {
      const topic = uniqueName('cdc')
      await createTopic(kafkaBrokers(), topic)
      const reader = await readTopic(kafkaBrokers(), topic)
      readers.push(reader)
      return { topic, reader }
    },
  }
}
