// The dashboard, the alert rules and the reference speak of metrics that exist, and of all of them.
import { readFile } from 'node:fs/promises'
import { Registry } from 'prom-client'
import { expect, it } from 'vitest'
import { COUNTERS, GAUGES, HISTOGRAMS } from '../../src/telemetry/metrics.ts'
import { METRIC_NAMES } from '../../src/telemetry/otel/names.ts'
import { prometheusMetrics } from '../../src/telemetry/prometheus.ts'
import { Lifecycle } from '../../src/lifecycle.ts'
import { silentLogger } from '../../src/runtime/logger.ts'

const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8')

const registry = new Registry()
prometheusMetrics(
  {
    events: new Lifecycle(silentLogger).events,
    stats: () => Promise.reject(new Error('not asked')),
    activity: () => [],
  },
  { registry },
)
const registered = registry.getMetricsAsArray().map(({ name }) => name)
const metrics = Object.values({ ...COUNTERS, ...GAUGES, ...HISTOGRAMS })

function namesIn(text: string): string[] {
  const names = [...text.matchAll(/\baftercommit_\w+/g)].map(([name]) => name)
  return [...new Set(names.map((name) => name.replace(/_(?:bucket|sum|count)$/, '')))].toSorted()
}

it('has every metric on the dashboard, and no other', async () => {
  const dashboard = await read('docs/monitoring/grafana.json')
  const { panels } = JSON.parse(dashboard) as { panels: { targets: { expr: string }[] }[] }
  const expressions = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
  expect(namesIn(expressions.join(' '))).toEqual(registered.toSorted())
  expect(namesIn(dashboard)).toEqual(registered.toSorted())
})

it('alerts on metrics that exist, by labels that they have, and says what to look at', async () => {
  const rules = await read('docs/monitoring/alerts.yml')
  expect(namesIn(rules).filter((name) => !registered.includes(name))).toEqual([])
  const alerts = rules.split(/^ {6}- alert: /m).slice(1)
  expect(alerts.map((alert) => alert.split('\n')[0])).toEqual([
    'OutboxEventsTooOld',
    'OutboxDeadLetters',
    'OutboxCircuitOpen',
    'OutboxFailureRate',
    'OutboxDuplicates',
    'OutboxNothingPublishes',
    'OutboxDatabaseAway',
    'OutboxNotMonitored',
  ])
  const runbook = await read('docs/runbook.md')
  const headings = [...runbook.matchAll(/^#{2,3} (.+)$/gm)].map(([, heading]) => heading!)
  const anchors = headings.map((heading) => heading.toLowerCase().replaceAll(' ', '-'))
  for (const alert of alerts) {
    expect(anchors).toContain(/runbook: docs\/runbook\.md#(\S+)/.exec(alert)?.[1])
    const [, expression, rest] = /expr:(.*?)\n {8}(?:for|labels):(.*)/s.exec(alert)!
    expect(rest).toMatch(/summary: .+\n\s+description: >-\n\s+\S/)
    const used = metrics.filter(({ name }) => expression!.includes(name.replaceAll('.', '_')))
    expect(used.length).toBeGreaterThan(0)
    for (const [, list] of expression!.matchAll(/by \(([^)]+)\)/g)) {
      const labels = used.flatMap((metric): string[] => [...metric.labels])
      for (const label of list!.split(', ')) expect(['instance', ...labels]).toContain(label)
    }
  }
})

it('alerts on the first dead letter of a topic', async () => {
  const rules = await read('docs/monitoring/alerts.yml')
  // A counter begins with the first event that it counts, and increase() is 0 over a series that begins.
  const [, expression] = /- alert: OutboxDeadLetters\n +expr: (.*)/.exec(rules)!
  expect(expression).toBe('max(aftercommit_dead_letters) > 0')
})

it('has every metric in the reference under both names, and no other', async () => {
  const page = await read('docs/reference/metrics.md')
  const rows = [...page.matchAll(/^\| `(\w+)` \| `([\w.]+)` \| ([\w, ]+) \| (.+) \|$/gm)]
  const documented = rows.map(([, prometheus, name, labels, help]) => {
    return { prometheus, name, labels, help }
  })
  const expected = metrics.map((metric, n) => ({
    prometheus: registered.find((name) => isNameOf(name, metric.name)),
    name: `aftercommit.${metric.name}`,
    labels: metric.labels.join(', ') || 'none',
    help: metrics[n]!.help,
  }))
  expect(documented).toEqual(expected)
  const messaging = [...page.matchAll(/^\| `(messaging[\w.]+)`/gm)].map(([, name]) => name!)
  expect(messaging).toEqual(Object.values(METRIC_NAMES))
})

function isNameOf(prometheus: string, name: string): boolean {
  const plain = `aftercommit_${name.replaceAll('.', '_')}`
  return [plain, `${plain}_total`, `${plain}_seconds`].includes(prometheus)
}
