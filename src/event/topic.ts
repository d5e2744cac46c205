// From event to topic: what the option `topic` says. A table is checked and copied once; what it does not name is
// refused at emit, and with a catalog, whose events are known, already by createOutbox().
import type { EventCatalog } from './catalog.ts'
import { show } from './duration.ts'
import { EventRefusedError, OutboxOptionsError } from './errors.ts'
import type { NewEvent } from './events.ts'
import { rejectUnknown, requireName, suggest } from './validate.ts'

/** Topics by what happened, or by what it happened to; the first comes before the second. */
export interface TopicTable {
  readonly byType?: Readonly<Record<string, string>>
  readonly byAggregate?: Readonly<Record<string, string>>
}

/** One name for all, a table, or a function, which answers undefined for what has no topic. */
export type TopicRule =
  | string
  | TopicTable
  | ((event: NewEvent) => string | null | undefined)
  | undefined

/** What an event looks like to a table. */
type Named = Pick<NewEvent, 'type' | 'aggregateType'>

export function resolveTopicRule(topic: TopicRule): TopicRule {
  if (topic === undefined || typeof topic === 'function') return topic
  if (typeof topic !== 'object' || topic === null) return requireName('topic', topic)
  rejectUnknown('the table topic', topic, ['byType', 'byAggregate'])
  const { byType, byAggregate } = topic
  if (byType === undefined && byAggregate === undefined) {
    throw new OutboxOptionsError(
      "topic is a table that names nothing; give it byType or byAggregate, such as { byAggregate: { order: 'orders' } }",
    )
  }
  return Object.freeze({
    byType: copyNames('topic.byType', byType),
    byAggregate: copyNames('topic.byAggregate', byAggregate),
  })
}

/** The topic by the rule alone. */
export function topicByRule(event: NewEvent, rule: TopicRule): string {
  const topic = typeof rule === 'function' ? rule(event) : topicByName(event, rule)
  if (topic !== null && topic !== undefined) return topic
  const remedy =
    typeof rule === 'function'
      ? 'the function given as topic answers none for it; let it answer one'
      : 'the table topic names neither; add one of them to it'
  throw noRoute(event, `has no topic: ${remedy}, or give the event a topic of its own`)
}

/** That no publisher takes its topic is known before it is saved, so it is refused rather than stored for nobody. */
export function requireRoute(
  event: Named,
  topic: string,
  routed: ReadonlySet<string> | null,
): void {
  if (routed === null || routed.has(topic)) return
  throw noRoute(
    event,
    `goes to the topic '${topic}', for which no publisher is named: ${missingRoute(topic, routed)}`,
  )
}

/** Whatever can be known without an event. */
export function checkRoutes(rules: {
  readonly topic: TopicRule
  readonly catalog: EventCatalog | null
  readonly routedTopics: ReadonlySet<string> | null
  readonly deadLetterTopic: string | null
}): void {
  const { topic: rule, catalog, routedTopics: routed, deadLetterTopic } = rules
  const requireRouted = (what: string, topic: string) => {
    if (routed === null || routed.has(topic)) return
    throw new OutboxOptionsError(
      `${what} is '${topic}', for which no publisher is named: ${missingRoute(topic, routed)}`,
    )
  }
  if (deadLetterTopic !== null) requireRouted('deadLetterTopic', deadLetterTopic)
  if (typeof rule === 'string') requireRouted('topic', rule)
  if (typeof rule === 'object') {
    for (const [by, topics] of Object.entries(rule) as [string, Record<string, string>][]) {
      for (const [name, topic] of Object.entries(topics)) {
        requireRouted(`topic.${by}.${name}`, topic)
      }
    }
    if (catalog) checkTable(rule, catalog)
  }
  for (const [type, declaration] of Object.entries(catalog ?? {})) {
    const { aggregate: aggregateType } = declaration
    const topic = declaration.topic ?? topicByName({ type, aggregateType }, rule)
    if (topic !== undefined) requireRouted(`the topic of the event '${type}'`, topic)
    else if (typeof rule !== 'function') {
      throw new OutboxOptionsError(
        `the event '${type}' of the aggregate '${aggregateType}' has no topic: the table topic names neither; add one of them to it, or declare a topic`,
      )
    }
  }
}

function topicByName(event: Named, rule: TopicRule): string | undefined {
  if (typeof rule === 'function') return undefined
  if (typeof rule !== 'object') return rule ?? event.aggregateType
  return rule.byType?.[event.type] ?? rule.byAggregate?.[event.aggregateType]
}

function checkTable({ byType = {}, byAggregate = {} }: TopicTable, catalog: EventCatalog): void {
  const types = Object.keys(catalog)
  const aggregates = [...new Set(Object.values(catalog).map(({ aggregate }) => aggregate))]
  for (const [by, names, known] of [
    ['byType', Object.keys(byType), types],
    ['byAggregate', Object.keys(byAggregate), aggregates],
  ] as const) {
    const unknown = names.find((name) => !known.includes(name))
    if (unknown === undefined) continue
    throw new OutboxOptionsError(
      `topic.${by} names '${unknown}', which the catalog does not have; ${suggest(unknown, known)}`,
    )
  }
}

function copyNames(option: string, given: unknown): Readonly<Record<string, string>> {
  if (given !== undefined && (typeof given !== 'object' || given === null)) {
    throw new OutboxOptionsError(`${option} must be an object of topics, got ${show(given)}`)
  }
  const entries = Object.entries(given ?? {}).map(
    ([name, topic]) => [name, requireName(`${option}.${name}`, topic)] as const,
  )
  // No prototype: an event type called 'constructor' must not find anything here.
  return Object.freeze(Object.assign(Object.create(null), Object.fromEntries(entries)))
}

function missingRoute(topic: string, routed: ReadonlySet<string>): string {
  return `add it to the routes of routerPublisher(), or set otherwise; ${suggest(topic, [...routed])}`
}

function noRoute({ type, aggregateType }: Named, why: string): EventRefusedError {
  return new EventRefusedError(
    'NO_ROUTE',
    `the event '${type}' of the aggregate type '${aggregateType}' ${why}`,
  )
}
