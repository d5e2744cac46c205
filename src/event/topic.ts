// From event to topic, by the option `topic`. A table is checked and copied once. emit() refuses an event that the
// table does not list; with a catalog, whose events are known, createOutbox() already does.
import type { EventCatalog } from './catalog.ts'
import { show } from '../checks/duration.ts'
import { EventRefusedError, OutboxOptionsError } from '../errors.ts'
import type { NewEvent } from './event.ts'
import { rejectUnknown, requireName, suggest } from '../checks/checks.ts'

/** Topics by event type or by aggregate type. The event type takes precedence. */
export interface TopicTable {
  readonly byType?: Readonly<Record<string, string>>
  readonly byAggregate?: Readonly<Record<string, string>>
}

/** One name for all events, a table, or a function that returns undefined for an event without a topic. */
export type TopicRule =
  | string
  | TopicTable
  | ((event: NewEvent) => string | null | undefined)
  | undefined

/** The fields of an event that a table looks at. */
type Named = Pick<NewEvent, 'type' | 'aggregateType'>

export function resolveTopicRule(topic: TopicRule): TopicRule {
  if (topic === undefined || typeof topic === 'function') return topic
  if (typeof topic !== 'object' || topic === null) return requireName('topic', topic)
  rejectUnknown('the table topic', topic, ['byType', 'byAggregate'])
  const { byType, byAggregate } = topic
  if (byType === undefined && byAggregate === undefined) {
    throw new OutboxOptionsError(
      "topic is an empty table; give it byType or byAggregate, such as { byAggregate: { order: 'orders' } }",
    )
  }
  return Object.freeze({
    byType: copyNames('topic.byType', byType),
    byAggregate: copyNames('topic.byAggregate', byAggregate),
  })
}

/** The topic that the rule alone determines. Refuses the event if there is none. */
export function topicByRule(event: NewEvent, rule: TopicRule): string {
  const topic = typeof rule === 'function' ? rule(event) : topicByName(event, rule)
  if (topic !== null && topic !== undefined) return topic
  const remedy =
    typeof rule === 'function'
      ? 'the function given as topic returned none for it; return one'
      : 'the table given as topic lists neither name; add one of them'
  throw noRoute(event, `has no topic: ${remedy}, or set a topic on the event`)
}

/** The topic of events of this type, as far as it is known without one of them: from the catalog, or from a table that names it. */
export function topicOfType(
  type: string,
  rule: TopicRule,
  catalog: EventCatalog | null,
): string | null {
  const declaration = catalog?.[type]
  if (declaration) {
    return (
      declaration.topic ?? topicByName({ type, aggregateType: declaration.aggregate }, rule) ?? null
    )
  }
  return typeof rule === 'object' ? (rule.byType?.[type] ?? null) : null
}

/** For an event whose topic has no publisher: it would be saved and never sent. */
export function unroutedError(event: Named, topic: string, routed: ReadonlySet<string>) {
  return noRoute(
    event,
    `goes to the topic '${topic}', which has no publisher; ${missingRoute(topic, routed)}`,
  )
}

/** `routed` is null if every topic has a publisher. */
export function requireRoute(
  what: string,
  topic: string,
  routed: ReadonlySet<string> | null,
): void {
  if (routed === null || routed.has(topic)) return
  throw new OutboxOptionsError(
    `${what} is '${topic}', which has no publisher; ${missingRoute(topic, routed)}`,
  )
}

/** Checks everything that is known without an event. */
export function checkRoutes(rules: {
  readonly topic: TopicRule
  readonly catalog: EventCatalog | null
  readonly routedTopics: ReadonlySet<string> | null
  readonly deadLetterTopic: string | null
}): void {
  const { topic: rule, catalog, routedTopics: routed, deadLetterTopic } = rules
  const requireRouted = (what: string, topic: string) => requireRoute(what, topic, routed)
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
  for (const [type, { aggregate: aggregateType }] of Object.entries(catalog ?? {})) {
    const topic = topicOfType(type, rule, catalog)
    if (topic !== null) requireRouted(`the topic of the event '${type}'`, topic)
    else if (typeof rule !== 'function') {
      throw new OutboxOptionsError(
        `the event '${type}' of the aggregate '${aggregateType}' has no topic: the table given as topic lists neither name; add one of them, or declare a topic`,
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
      `topic.${by} names '${unknown}', which is not in the catalog; ${suggest(unknown, known)}`,
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
  // No prototype: an event type called 'constructor' must not match an inherited property.
  return Object.freeze(Object.assign(Object.create(null), Object.fromEntries(entries)))
}

function missingRoute(topic: string, routed: ReadonlySet<string>): string {
  return `add it to the routes of routerPublisher(), or set its option 'otherwise'; ${suggest(topic, [...routed])}`
}

function noRoute({ type, aggregateType }: Named, why: string): EventRefusedError {
  return new EventRefusedError(
    'NO_ROUTE',
    `the event '${type}' of the aggregate type '${aggregateType}' ${why}`,
  )
}
