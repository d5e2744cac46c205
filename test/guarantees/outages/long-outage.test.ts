// Kafka is away for a minute under load. Nobody who commits has to wait, no event pays with an attempt,
// what waits lies in the table and not in memory, the log tells of one outage and not of its events, and
// everything arrives in order.
import { performance } from 'node:perf_hooks'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Outbox } from '../../../src/index.ts'
import { DEFAULTS } from '../../../src/options/options.ts'
import { describeWithOwnKafka, useFixture } from '../../support/fixture.ts'
import { oneKafkaClient } from '../../support/kafka-clients.ts'
import { type KafkaServer, startKafka } from '../../support/servers/kafka-server.ts'
import { recordingLogger } from '../../support/doubles/recording-logger.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { createTopic, readTopic } from '../../support/servers/topic-reader.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()

const OUTAGE_MS = 60_000
const WRITERS = 4
const AGGREGATES_PER_WRITER = 50
const EVENTS_PER_UNIT = 3
/** So little that the first seconds, before the outage is noticed, bring more. */
const MAX_IN_FLIGHT = 500
const BATCH_SIZE = 250
/** What an instance holds in memory is leased to it, so the table tells how much that is. */
const HELD = `status = 'pending' and lease_token is not null`

describeWithOwnKafka('Kafka away for a minute while 5,000 units of work commit', () => {
  let kafka: KafkaServer
  beforeAll(async () => {
    kafka = await startKafka()
  })
  afterAll(() => kafka.stop())

  it('costs no attempts and little memory, and everything arrives in the order of commit', async () => {
    await createTopic(kafka.brokers, 'orders')
    const logger = recordingLogger()
    let sent = 0
    const real = oneKafkaClient.publisher(kafka.brokers)
    const outbox = fixture.outbox({
      ...DEFAULTS,
      publisher: {
        ...real,
        async publish(events) {
          sent += events.length
          return await real.publish(events)
        },
      },
      topic: 'orders',
      batchSize: BATCH_SIZE,
      maxInFlight: MAX_IN_FLIGHT,
      logger,
    })
    await outbox.start()
    const writers = writersOn(outbox)
    await writers.commit({ units: 200, withinMs: 2_000 })
    const up = await writers.commit({ units: 500, withinMs: 6_000 })

    globalThis.gc?.()
    const rssBefore = process.memoryUsage.rss()
    logger.lines.length = 0
    await kafka.kill()
    const sentBefore = sent
    const away = await writers.commit({ units: 5_000, withinMs: OUTAGE_MS })
    const backlog = await countRows(`status = 'pending'`)
    const sentInVain = sent - sentBefore
    await kafka.start()
    await waitUntil(
      async () => {
        const left = await fixture.sql`select 1 from outbox where status = 'pending' limit 1`
        return left.length === 0
      },
      { message: 'everything was published after the outage', timeoutMs: 90_000 },
    )
    await outbox.stop()
    const reader = await readTopic(kafka.brokers, 'orders')
    const messages = await reader.readToEnd()
    await reader.stop()
    const arrived = firstAppearances(messages)

    const lines = logger.lines.filter(({ level }) => level !== 'debug')
    const [awayMs, upMs] = [median(away.commitMs), median(up.commitMs)]
    const duplicates = messages.length - [...arrived.values()].flat().length
    console.log(
      `median commit ${awayMs.toFixed(2)} ms away, ${upMs.toFixed(2)} ms up, ratio ${(awayMs / upMs).toFixed(2)}; ` +
        `RSS +${((away.peakRss - rssBefore) / 2 ** 20).toFixed(0)} MB; backlog ${backlog}, held at most ` +
        `${away.peakHeld}, sent in vain ${sentInVain}; duplicates ${duplicates}; log lines ${lines.length}`,
    )
    expect(await countRows(`attempts > 0 or status <> 'published'`)).toBe(0)
    expect(arrived).toEqual(writers.committed)
    expect(away.commitMs).toHaveLength(5_000)
    // On top comes what is claimed, and what is being committed.
    const onTop = 2 * BATCH_SIZE + WRITERS * EVENTS_PER_UNIT
    expect(away.peakHeld).toBeLessThanOrEqual(MAX_IN_FLIGHT + onTop)
    // What was under way before the outage was noticed, and probes.
    expect(sentInVain).toBeLessThan(2 * BATCH_SIZE)
    const ofBroker = lines.filter(({ fields }) => 'topic' in fields && fields.topic === null)
    const told = ofBroker.map(({ message }) => message)
    expect(told.filter((message) => message.includes('circuit'))).toEqual([
      'sends to a destination fail, circuit opened',
      'sends to a destination work again, circuit closed',
    ])
    // Not one for each probe: in between it is told of once a minute.
    expect(told.length).toBeLessThan(6)
    expect(lines.length).toBeLessThan(20)
  }, 300_000)
})

/** Each has aggregates of its own, so it knows the order in which their events were committed. */
function writersOn(outbox: Outbox<PostgresJsDatabase>) {
  const committed = new Map<string, number[]>()

  async function commitOne(aggregateId: string): Promise<void> {
    const before = committed.get(aggregateId) ?? []
    const numbers = Array.from({ length: EVENTS_PER_UNIT }, (_, n) => before.length + n)
    await outbox.withOutbox((_, emit) => {
      for (const payload of numbers) emit(newEvent({ aggregateId, payload }))
    })
    committed.set(aggregateId, [...before, ...numbers])
  }

  return {
    committed,
    /** Spreads the units of work evenly over the time, and tells how each commit went. */
    async commit({ units, withinMs }: { units: number; withinMs: number }) {
      const seen = { commitMs: [] as number[], peakRss: 0, peakHeld: 0 }
      const startedAt = performance.now()
      let begun = 0
      const write = async (writer: number) => {
        for (let n = 0; begun < units; n += 1) {
          begun += 1
          const due = startedAt + (begun / units) * withinMs
          await waitUntil(() => performance.now() >= due, { message: 'the next unit is due' })
          const begunAt = performance.now()
          await commitOne(`order-${writer}-${n % AGGREGATES_PER_WRITER}`)
          seen.commitMs.push(performance.now() - begunAt)
          seen.peakRss = Math.max(seen.peakRss, process.memoryUsage.rss())
          if (n % 10 === 0) seen.peakHeld = Math.max(seen.peakHeld, await countRows(HELD))
        }
      }
      await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)))
      return seen
    },
  }
}

async function countRows(condition: string): Promise<number> {
  const [row] = await fixture.sql.unsafe(`select count(*)::int as n from outbox where ${condition}`)
  return row?.['n'] as number
}

/** Per aggregate, without the copies that a lost ack may leave. */
function firstAppearances(messages: readonly { key: string | null; value: string | null }[]) {
  const numbers = new Map<string | null, Set<number>>()
  for (const { key, value } of messages) {
    numbers.set(key, (numbers.get(key) ?? new Set()).add(Number(value)))
  }
  return new Map([...numbers].map(([key, seen]) => [key, [...seen]]))
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!
}
