// The metrics say what happened: the same scenario, seen by a real OpenTelemetry SDK and by prom-client at once.
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { Registry } from 'prom-client'
import { expect, it } from 'vitest'
import type { OutboxEvent, PublishResult } from '../../../src/index.ts'
import { otel } from '../../../src/telemetry/otel/otel.ts'
import { prometheusMetrics } from '../../../src/telemetry/prometheus.ts'
import { newEvent } from '../../support/doubles/sample-events.ts'
import { acked, failedAs, scriptedPublisher } from '../../support/doubles/scripted-publisher.ts'
import { useFixture } from '../../support/fixture.ts'
import { seriesOf, useOpenTelemetry } from '../../support/open-telemetry.ts'
import { defer } from '../../support/timing/deferred.ts'
import { nextEvent, waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture()
const { metrics: collect, spans, request } = useOpenTelemetry()

/** In the form of collect(), with the names of Prometheus. Of histograms the count. */
async function scrape(registry: Registry): Promise<Record<string, number>> {
  const all = await registry.getMetricsAsJSON()
  const values = all.flatMap(({ name, values: points }) =>
    points.flatMap((point) => {
      const { labels, value } = point
      const series = (point as { metricName?: string }).metricName ?? name
      return /_(?:sum|bucket)$/.test(series) ? [] : [[seriesOf(series, labels), value] as const]
    }),
  )
  return Object.fromEntries(values)
}

/** What an exporter makes of the names of OpenTelemetry. */
function asPrometheus(collected: Record<string, number>, histograms: readonly string[]) {
  const own = Object.entries(collected).filter(([series]) => series.startsWith('aftercommit.'))
  const counters = /^aftercommit_(?:events_(?!pending|scheduled|due|held)\w+|errors)$/
  return Object.fromEntries(
    own.map(([series, value]) => {
      const [, dotted, labels = ''] = /^([^{]+)(\{.*)?$/.exec(series)!
      const name = dotted!.replaceAll('.', '_')
      if (histograms.includes(dotted!)) return [`${name}_seconds_count${labels}`, value]
      if (name === 'aftercommit_oldest_pending') return [`${name}_seconds${labels}`, value]
      return [`${name}${counters.test(name) ? '_total' : ''}${labels}`, value]
    }),
  )
}

const DURATIONS = ['commit_to_ack', 'send', 'claim', 'record', 'poll'].map(
  (step) => `aftercommit.${step}.duration`,
)

it('counts what was published by which path, failed, died, or went out twice, alike in both', async () => {
  const blocked = new Map<string, ReturnType<typeof defer<PublishResult>>>()
  const answer = async (event: OutboxEvent) => {
    if (event.type === 'Poison') return failedAs('permanent')
    if (event.type === 'Refused') return failedAs('rejected')
    return (await blocked.get(event.type)?.promise) ?? acked(event)
  }
  const publisher = scriptedPublisher(answer, { orderScope: 'topic' })
  const outbox = fixture.outbox({ publisher, backoffBase: '20m', telemetry: otel({ refresh: 0 }) })
  const registry = new Registry()
  prometheusMetrics(outbox, { registry, refresh: 0 })
  const emit = (type: string, topic: string) =>
    outbox.withOutbox(async (_, one) => one(newEvent({ type, topic })))

  await emit('Left', 'orders') // Not started: the fallback sends it.
  await outbox.pollOnce()
  await outbox.start()
  const published = nextEvent(outbox.events, 'event:published')
  await emit('Good', 'orders')
  await published
  const died = nextEvent(outbox.events, 'event:dead')
  await emit('Poison', 'orders')
  await died
  const failed = nextEvent(outbox.events, 'event:failed')
  await emit('Refused', 'mail')
  await failed
  const twice = nextEvent(outbox.events, 'event:duplicate')
  blocked.set('Twice', defer<PublishResult>())
  const id = await emit('Twice', 'orders')
  await waitUntil(() => publisher.batches.length === 5, { message: 'it is being sent' })
  expect(await scrape(registry)).toMatchObject({ 'aftercommit_in_flight{publisher=scripted}': 1 })
  await fixture.store().recordPublished([id])
  blocked.get('Twice')!.resolve(acked({ topic: 'orders', aggregateId: '1' } as OutboxEvent))
  await twice
  await waitUntil(() => outbox.activity().every(({ inFlight }) => inFlight === 0), {
    message: 'all leases are dropped',
  })

  await outbox.pause('mail')

  const scraped = await scrape(registry)
  expect(scraped).toMatchObject({
    'aftercommit_events_saved_total{topic=orders}': 4,
    'aftercommit_events_saved_total{topic=mail}': 1,
    'aftercommit_events_published_total{path=fallback,topic=orders}': 1,
    'aftercommit_events_published_total{path=immediate,topic=orders}': 2,
    'aftercommit_events_failed_total{path=immediate,topic=mail}': 1,
    'aftercommit_events_dead_total{topic=orders}': 1,
    'aftercommit_events_duplicates_total{path=immediate,topic=orders}': 1,
    'aftercommit_events_claimed_total{publisher=scripted}': 1,
    'aftercommit_in_flight{publisher=scripted}': 0,
    'aftercommit_circuits_open{publisher=scripted}': 0,
    aftercommit_database_reachable: 1,
    aftercommit_events_pending: 1,
    aftercommit_events_scheduled: 0,
    aftercommit_events_due: 0,
    aftercommit_events_held: 0,
    aftercommit_dead_letters: 1,
    aftercommit_paused: 1,
    'aftercommit_commit_to_ack_duration_seconds_count{topic=orders}': 2,
    'aftercommit_send_duration_seconds_count{publisher=scripted}': 5,
    'aftercommit_claim_duration_seconds_count{publisher=scripted}': 1,
    'aftercommit_poll_duration_seconds_count{publisher=scripted}': 1,
  })
  expect(scraped['aftercommit_oldest_pending_seconds']).toBeGreaterThan(0)
  expect(scraped['aftercommit_record_duration_seconds_count']).toBeGreaterThanOrEqual(4)

  const collected = await collect()
  const asScraped = asPrometheus(collected, DURATIONS)
  // Its age goes on between the two looks.
  const { aftercommit_oldest_pending_seconds: age, ...same } = scraped
  expect(asScraped).toMatchObject(same)
  expect(asScraped['aftercommit_oldest_pending_seconds']).toBeGreaterThanOrEqual(age!)
  expect(Object.keys(asScraped).toSorted()).toEqual(Object.keys(scraped).toSorted())
  const about = 'messaging.operation.name=send,messaging.system.name=scripted'
  expect(collected).toMatchObject({
    [`messaging.client.sent.messages{messaging.destination.name=orders,${about}}`]: 3,
    [`messaging.client.sent.messages{error.type=Error,messaging.destination.name=orders,${about}}`]: 1,
    [`messaging.client.operation.duration{messaging.destination.name=orders,${about}}`]: 3,
  })
})

it('reports what it is asked for and no more, with attributes that tell outboxes apart', async () => {
  const attributes = { outbox: 'billing' }
  const telemetry = otel({ traces: false, messagingMetrics: false, attributes })
  const headers: object[] = []
  const handlers = { Asked: (event: { headers: object }) => void headers.push(event.headers) }
  const outbox = fixture.handling(handlers, { telemetry })
  await outbox.start()
  const published = nextEvent(outbox.events, 'event:published')
  const emitted = newEvent({ type: 'Asked', topic: 'asked' })
  await request(() => outbox.withOutbox(async (_, emit) => emit(emitted)))
  await published
  const collected = await collect()
  const own = Object.keys(collected).filter((series) => series.includes('topic=asked'))
  expect(own).toContain('aftercommit.events.published{outbox=billing,path=immediate,topic=asked}')
  expect(own.filter((series) => !series.includes('outbox=billing'))).toEqual([])
  expect(Object.keys(collected).join()).not.toContain('messaging.destination.name=asked')
  expect(spans().map(({ name }) => name)).toEqual(['request'])
  expect(headers).toEqual([{}])
})

it('shows a circuit that is open, and that it has closed', async () => {
  let isAway = true
  const publisher = scriptedPublisher((event) => (isAway ? failedAs('transient') : acked(event)))
  const outbox = fixture.outbox({ publisher, poller: true })
  const registry = new Registry()
  prometheusMetrics(outbox, { registry, prefix: 'billing_' })
  await outbox.start()
  const opened = nextEvent(outbox.events, 'circuit:open')
  await outbox.withOutbox(async (_, emit) => emit(newEvent()))
  await opened
  const open = 'billing_circuits_open{publisher=scripted}'
  expect(await scrape(registry)).toMatchObject({ [open]: 1 })
  const closed = nextEvent(outbox.events, 'circuit:closed')
  isAway = false
  await closed
  expect(await scrape(registry)).toMatchObject({ [open]: 0 })
})

it('leaves out what the table holds while the database is away, and asks it once for many scrapes', async () => {
  const outbox = fixture.handling({})
  const asked: string[] = []
  const watched = {
    events: outbox.events,
    activity: () => outbox.activity(),
    stats: () => {
      asked.push('asked')
      return outbox.stats()
    },
  }
  const [cached, fresh] = [new Registry(), new Registry()]
  prometheusMetrics(watched, { registry: cached, refresh: '1h' })
  await Promise.all([scrape(cached), scrape(cached)])
  expect(await scrape(cached)).toMatchObject({ aftercommit_oldest_pending_seconds: 0 })
  expect(asked).toHaveLength(1)

  prometheusMetrics(watched, { registry: fresh, refresh: 0 })
  expect(await scrape(fresh)).toMatchObject({ aftercommit_events_pending: 0 })
  await fixture.sql`alter table outbox rename to away`
  const away = await scrape(fresh).finally(() => fixture.sql`alter table away rename to outbox`)
  expect(away).toMatchObject({ aftercommit_database_reachable: 0 })
  expect(Object.keys(away).filter((name) => /pending|due|held|dead_letters/.test(name))).toEqual([])
  expect(await scrape(fresh)).toMatchObject({
    aftercommit_database_reachable: 1,
    aftercommit_events_pending: 0,
  })
})

it('serves text over HTTP, and refuses two outboxes under one name', async () => {
  const outbox = fixture.handling({})
  const registry = new Registry()
  const { handler } = prometheusMetrics(outbox, { registry })
  expect(() => prometheusMetrics(outbox, { registry })).toThrow(/another prefix/)
  expect(() => prometheusMetrics(outbox, { prefix: 'a-b' })).toThrow(/prefix must begin/)
  const server = createServer(handler).listen(0)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const response = await fetch(`http://localhost:${port}/metrics`)
  expect(response.headers.get('content-type')).toMatch(/^text\/plain/)
  expect(await response.text()).toMatch(/^aftercommit_oldest_pending_seconds 0$/m)
  server.close()
  server.closeAllConnections()
})
