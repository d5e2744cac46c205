// A host whose clock is ahead delivers its own events and those of others. Brokers refuse messages from the future.
import { afterEach, expect, it, vi } from 'vitest'
import { openTopic, readAll } from '../../support/conformance/kafka-conformance.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { describeWithKafka, kafkaBrokers, useFixture } from '../../support/fixture.ts'
import { kafkaClients } from '../../support/kafka-clients.ts'
import { nextEvent } from '../../support/timing/wait-until.ts'

const fixture = useFixture()

afterEach(() => {
  vi.useRealTimers()
})

describeWithKafka('a host whose clock is 90 minutes ahead', () => {
  it.each(kafkaClients)('delivers on both paths with $title', async ({ publisher }) => {
    // The default from Kafka 4 on.
    const topic = await openTopic({ 'message.timestamp.after.max.ms': '3600000' })
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 90 * 60_000 })
    const outbox = fixture.outbox({ publisher: publisher(kafkaBrokers()), topic })
    // Before start(): left to the fallback.
    await outbox.withOutbox((tx, emit) => emit(newEvent({ aggregateId: '1' })))
    expect(await outbox.pollOnce()).toBe(1)
    await outbox.start()
    const published = nextEvent(outbox.events, 'event:published')
    await outbox.withOutbox((tx, emit) => emit(newEvent({ aggregateId: '2' })))
    expect(await published).toMatchObject({ path: 'immediate' })
    await outbox.stop()
    expect((await fixture.rows()).map(({ status }) => status)).toEqual(['published', 'published'])
    expect(await readAll(topic)).toHaveLength(2)
  })
})
