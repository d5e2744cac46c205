// Events go through a real outbox and a real broker to three processes that are killed again and again while they
// handle them. Effects are rows that nothing keeps unique: each event has to leave exactly one.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { groupBy } from '../../../src/runtime/group-by.ts'
import { kafkaPublisher } from '../../../src/publishers/kafka/kafka-publisher.ts'
import { rabbitmqPublisher } from '../../../src/publishers/rabbitmq/rabbitmq-publisher.ts'
import { type RunningProcess, startProcess } from '../../support/servers/child-process.ts'
import {
  describeWithKafka,
  describeWithRabbit,
  kafkaBrokers,
  quietKafka,
  rabbitUrl,
  useFixture,
} from '../../support/fixture.ts'
import { useInbox } from '../../support/inbox.ts'
import type { Setup as KafkaSetup } from '../../support/processes/consumes-from-kafka.ts'
import type { Setup as RabbitSetup } from '../../support/processes/consumes-from-rabbitmq.ts'
import { openRabbit, type Rabbit } from '../../support/servers/rabbitmq.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { createTopic } from '../../support/servers/topic-reader.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'
import { Random } from '../../tools/torture/random.ts'

const fixture = useFixture()
useInbox(fixture)

const NAMES = ['a', 'b', 'c']
const KAFKA_EVENTS = 2_000
const KAFKA_AGGREGATES = 40
const RABBIT_EVENTS = 400
/** So few that several events of one are on their way to different processes. */
const RABBIT_AGGREGATES = 5
const KILLS_EACH = 3
const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))

beforeEach(async () => {
  console.log(`SEED=${seed}`)
  await fixture.sql.unsafe(`drop table if exists positions, deliveries, late;
    create table positions (name text, partition int, next bigint, primary key (name, partition));
    create table deliveries (name text, outcome text);
    create table late (event_id text)`)
})

/** Emits them in units of work of several events; answers when all are published. */
async function publish(
  publisher: Parameters<typeof fixture.outbox>[0]['publisher'],
  topic: string,
  count: number,
  aggregates: number,
): Promise<void> {
  const outbox = fixture.outbox({ publisher, topic, poller: true, pollInterval: '200ms' })
  await outbox.start()
  for (let first = 0; first < count; first += 20) {
    await outbox.withOutbox(async (_, emit) => {
      for (let n = first; n < first + 20; n += 1) {
        emit(newEvent({ aggregateId: `order-${n % aggregates}`, payload: n }))
      }
    })
  }
  await waitUntil(async () => (await fixture.rows()).every((row) => row.status === 'published'), {
    message: 'everything was published',
  })
  await outbox.stop()
}

const random = new Random(seed)

/** Kills it after as many lines as chance decides: two times out of three while it handles, if it does so soon. */
function killAtRandom(life: RunningProcess, mostLines: number): void {
  const least = random.between(1, mostLines)
  const inTheMiddle = random.chance(2 / 3)
  life.onLines((lines) => {
    const isTime = !inTheMiddle || lines.at(-1) === 'handling' || lines.length > least + 200
    if (lines.length >= least && isTime) life.kill()
  })
}

/** Lives through its kills, and once more to the end. */
async function liveThroughKills(start: () => RunningProcess) {
  let kills = 0
  let inTheMiddle = 0
  for (;;) {
    const life = start()
    if (kills < KILLS_EACH) killAtRandom(life, 400)
    const { code, signal, output } = await life.ended
    const lastLine = output.trim().split('\n').at(-1)
    if (signal !== 'SIGKILL') return { kills, inTheMiddle, code, lastLine }
    kills += 1
    if (lastLine === 'handling') inTheMiddle += 1
  }
}

type Effect = { event_id: string; aggregate: string; seq: number }

async function readEffects(): Promise<Effect[]> {
  return await fixture.sql<Effect[]>`
    select event_id, aggregate, seq::int as seq from effects order by n`
}

async function emittedIds(): Promise<string[]> {
  return (await fixture.rows()).map(({ id }) => id).toSorted()
}

async function countDeliveries(): Promise<Record<string, number>> {
  const rows = await fixture.sql`select outcome, count(*)::int from deliveries group by 1`
  return Object.fromEntries(rows.map((row) => [row['outcome'], row['count'] as number]))
}

function expectInOrder(effects: readonly Effect[]): void {
  for (const ofOne of groupBy(effects, ({ aggregate }) => aggregate).values()) {
    const seqs = ofOne.map(({ seq }) => seq)
    expect(seqs).toEqual(seqs.toSorted((x, y) => x - y))
  }
}

describeWithKafka('2,000 events, each delivered three times by processes that are killed', () => {
  it('have their effects exactly once, in order per aggregate', { timeout: 180_000 }, async () => {
    const brokers = kafkaBrokers()
    const topic = uniqueName('consumed')
    await createTopic(brokers, topic)
    await publish(
      kafkaPublisher({ kafka: quietKafka(brokers) }),
      topic,
      KAFKA_EVENTS,
      KAFKA_AGGREGATES,
    )
    const setup = { url: fixture.url, broker: brokers[0]!, topic, ends: await readEnds(topic) }

    const lives = await Promise.all(
      NAMES.map((name) => {
        const args = [JSON.stringify({ ...setup, name } satisfies KafkaSetup)]
        return liveThroughKills(() => startProcess('consumes-from-kafka', args))
      }),
    )

    const effects = await readEffects()
    expect(effects.map(({ event_id }) => event_id).toSorted()).toEqual(await emittedIds())
    expect(effects).toHaveLength(KAFKA_EVENTS)
    expectInOrder(effects)
    const { handled = 0, duplicate = 0, late = 0 } = await countDeliveries()
    console.log(`${JSON.stringify(lives)}, ${handled + duplicate} deliveries, ${handled} handled`)
    expect(lives).toMatchObject(NAMES.map(() => ({ kills: KILLS_EACH, code: 0 })))
    // Or it proves little.
    expect(lives.reduce((sum, { inTheMiddle }) => sum + inTheMiddle, 0)).toBeGreaterThan(0)
    // Those after which a process died before it could count them are missing here.
    expect(handled + duplicate).toBeGreaterThan(KAFKA_EVENTS * 3 - 100)
    expect(late).toBe(0)
  })
})

async function readEnds(topic: string): Promise<number[]> {
  const admin = quietKafka(kafkaBrokers()).admin()
  await admin.connect()
  const offsets = await admin.fetchTopicOffsets(topic)
  await admin.disconnect()
  return offsets.toSorted((x, y) => x.partition - y.partition).map(({ high }) => Number(high))
}

describeWithRabbit('consumers of a RabbitMQ queue that are killed', () => {
  let far: Rabbit
  beforeEach(async () => {
    far = await openRabbit(rabbitUrl())
  })
  afterEach(async () => {
    await far.close()
  })

  async function consumeAll(order: 'none' | 'aggregate'): Promise<void> {
    const queue = await far.declareQueue()
    await publish(rabbitmqPublisher({ url: rabbitUrl() }), queue, RABBIT_EVENTS, RABBIT_AGGREGATES)
    const setup = { url: fixture.url, rabbit: rabbitUrl(), queue, order }
    const alive = new Set<RunningProcess>()
    let kills = 0
    const live = async (name: string): Promise<void> => {
      const args = [JSON.stringify({ ...setup, name } satisfies RabbitSetup)]
      const life = startProcess('consumes-from-rabbitmq', args)
      alive.add(life)
      if (kills < NAMES.length * KILLS_EACH) killAtRandom(life, 60)
      const end = await life.ended
      if (!alive.delete(life)) return
      expect(end.signal).toBe('SIGKILL')
      kills += 1
      await live(name)
    }
    const lives = Promise.all(NAMES.map(live))
    const isEmpty = async () => (await far.channel.checkQueue(queue)).messageCount === 0
    const isDone = async () => {
      const [row] = await fixture.sql`select count(*)::int as n from
        (select event_id from effects union select event_id from late) as done`
      return (await isEmpty()) && (row!['n'] as number) >= RABBIT_EVENTS
    }
    await Promise.race([
      waitUntil(isDone, { message: 'the queue is empty', timeoutMs: 90_000 }),
      lives,
    ])
    const last = [...alive]
    alive.clear()
    for (const life of last) life.kill()
    await lives
    console.log(`${kills} kills, ${JSON.stringify(await countDeliveries())}`)
    expect(kills).toBeGreaterThanOrEqual(NAMES.length)
  }

  it('leave the effects of each event exactly once', { timeout: 120_000 }, async () => {
    await consumeAll('none')
    const effects = await readEffects()
    expect(effects.map(({ event_id }) => event_id).toSorted()).toEqual(await emittedIds())
  })

  it('leave no effect out of order where order is asked for, and tell of the rest', {
    timeout: 120_000,
  }, async () => {
    await consumeAll('aggregate')
    const effects = await readEffects()
    expectInOrder(effects)
    const late = await fixture.sql`select distinct event_id from late`
    // Or it proves little.
    expect(late.length).toBeGreaterThan(0)
    const ids = [...effects, ...late].map((row) => row['event_id'] as string)
    expect(ids.toSorted()).toEqual(await emittedIds())
  })
})
