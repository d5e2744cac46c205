// From topic to publisher. A router sends nothing itself: createOutbox() gives each publisher its own pipeline, so that
// publishers never wait for each other. The topic alone decides, because the row stores it: the fallback of any process
// reaches the same decision.
import { show } from '../checks/duration.ts'
import { OutboxOptionsError } from '../errors.ts'
import { rejectUnknown, requireMethods, requireName, suggest } from '../checks/checks.ts'
import { type OrderScopes, scopeOfTopic } from '../event/lane.ts'
import type { Publisher } from './publisher.ts'

export interface RouterPublisherOptions<Name extends string = string> {
  /** The publishers, under the names that routes, logs and lifecycle events use for them. */
  publishers: Readonly<Record<Name, Publisher>>
  /** The name of the publisher for each topic. */
  routes: Readonly<Record<string, NoInfer<Name>>>
  /** The name of the publisher for all other topics. @default events of other topics are refused at emit */
  otherwise?: NoInfer<Name>
}

/** What routerPublisher() returns. Only createOutbox() takes it. */
export interface RouterPublisher {
  readonly name: 'router'
  readonly destinations: readonly RoutedPublisher[]
}

/** A publisher with its name in the router and its topics. */
export interface RoutedPublisher {
  readonly name: string
  readonly publisher: Publisher
  readonly topics: TopicSelection
}

export interface TopicSelection {
  /** Only these topics; null for all. */
  readonly only: readonly string[] | null
  /** All topics but these. */
  readonly except: readonly string[]
}

/** The routers made here, whose options were checked. An object that only looks like a router is not in it. */
const ROUTERS = new WeakSet<object>()

export const EVERY_TOPIC: TopicSelection = Object.freeze({ only: null, except: [] })

export function routerPublisher<const Name extends string>(
  options: RouterPublisherOptions<Name>,
): RouterPublisher {
  rejectUnknown('routerPublisher()', options, ['publishers', 'routes', 'otherwise'])
  const publishers = requirePublishers(options.publishers)
  const known = [...publishers.keys()]
  const routes = Object.entries<string>(requireRecord('routes', options.routes))
  for (const [topic, name] of routes) {
    requireName('a topic in routes', topic)
    requireKnown(`the topic '${topic}' goes to`, name, known)
  }
  const { otherwise } = options
  if (otherwise !== undefined) requireKnown('otherwise is', otherwise, known)
  const destinations = known.map((name): RoutedPublisher => {
    const own = routes.filter(([, to]) => to === name).map(([topic]) => topic)
    const others = routes.filter(([, to]) => to !== name).map(([topic]) => topic)
    if (own.length === 0 && name !== otherwise) {
      throw new OutboxOptionsError(
        `routerPublisher() has a publisher '${name}' that no topic goes to; name it in routes or in otherwise, or remove it`,
      )
    }
    const topics =
      name === otherwise ? { only: null, except: others } : { only: own, except: [] as string[] }
    return Object.freeze({ name, publisher: publishers.get(name)!, topics: Object.freeze(topics) })
  })
  const router = Object.freeze({
    name: 'router',
    destinations: Object.freeze(destinations),
  } as const)
  ROUTERS.add(router)
  return router
}

export function isRouter(publisher: unknown): publisher is RouterPublisher {
  return ROUTERS.has(publisher as object)
}

/** Returns a function that finds the destination of a topic. Every topic that passed emit() has one. */
export function destinationByTopic<Destination extends Pick<RoutedPublisher, 'topics'>>(
  destinations: readonly Destination[],
): (topic: string) => Destination {
  const named = new Map<string, Destination>()
  for (const destination of destinations) {
    for (const topic of destination.topics.only ?? []) named.set(topic, destination)
  }
  const otherwise = destinations.find(({ topics }) => topics.only === null)
  return (topic) => (named.get(topic) ?? otherwise)!
}

/**
 * The scope of order for the events of each topic: the topic itself, or everything that its publisher sends. The
 * publisher that takes all topics, or all other topics, is not named in its scope: it keeps its lanes when a router is
 * put around it with this publisher as `otherwise`.
 */
export function orderScopes(destinations: readonly RoutedPublisher[]): OrderScopes {
  const byTopic = new Map<string, string>()
  let otherwise: OrderScopes['otherwise'] = 'publisher'
  for (const { name, publisher, topics } of destinations) {
    const { orderScope = 'publisher' } = publisher
    if (topics.only === null) otherwise = orderScope
    for (const topic of topics.only ?? []) byTopic.set(topic, scopeOfTopic(topic, orderScope, name))
  }
  return { byTopic, otherwise }
}

/** Every topic that has a publisher; null if every possible topic has one. */
export function routedTopics(destinations: readonly RoutedPublisher[]): ReadonlySet<string> | null {
  if (destinations.some(({ topics }) => topics.only === null)) return null
  return new Set(destinations.flatMap(({ topics }) => topics.only ?? []))
}

function requirePublishers(given: unknown): Map<string, Publisher> {
  const publishers = new Map<string, Publisher>()
  const names = new Map<unknown, string>()
  for (const [name, publisher] of Object.entries(requireRecord('publishers', given))) {
    requireName('a name in publishers', name)
    const owner = `the publisher '${name}'`
    if (isRouter(publisher)) {
      throw new OutboxOptionsError(
        `${owner} is a router itself; put its publishers and routes into this one`,
      )
    }
    requireMethods(owner, publisher, ['publish'], 'a publisher such as kafkaPublisher()')
    const twin = names.get(publisher)
    if (twin !== undefined) {
      throw new OutboxOptionsError(
        `${owner} is the same object as '${twin}', so it would be connected and closed twice; keep one name and route all their topics to it`,
      )
    }
    names.set(publisher, name)
    publishers.set(name, publisher)
  }
  if (publishers.size > 0) return publishers
  throw new OutboxOptionsError(
    'routerPublisher() has no publishers; name them: { publishers: { kafka: kafkaPublisher({ kafka }) }, routes: { orders: "kafka" } }',
  )
}

function requireRecord(option: string, value: unknown): Record<string, never> {
  if (typeof value === 'object' && value !== null) return value as Record<string, never>
  throw new OutboxOptionsError(
    `${option} of routerPublisher() must be an object, got ${show(value)}`,
  )
}

function requireKnown(what: string, name: unknown, known: readonly string[]): void {
  if (typeof name === 'string' && known.includes(name)) return
  const remedy = typeof name === 'string' ? `; ${suggest(name, known)}` : ''
  throw new OutboxOptionsError(`${what} ${show(name)}, which is not a name in publishers${remedy}`)
}
