// From topic to publisher. A router sends nothing itself: createOutbox() gives each of its publishers a pipeline of
// its own, so that nothing of one waits for another. The topic alone decides, as it is what the row remembers: the
// fallback of any process comes to the same answer.
import { show } from '../duration.ts'
import { OutboxOptionsError } from '../errors.ts'
import { rejectUnknown, requireMethods, requireName, suggest } from '../validate.ts'
import type { Publisher } from './publisher.ts'

export interface RouterPublisherOptions<Name extends string = string> {
  /** The publishers, by the names under which routes, logs and signals speak of them. */
  publishers: Readonly<Record<Name, Publisher>>
  /** Which of them gets the events of a topic. */
  routes: Readonly<Record<string, NoInfer<Name>>>
  /** Which of them gets all other topics. @default events of other topics are refused at emit */
  otherwise?: NoInfer<Name>
}

/** What routerPublisher() answers: for createOutbox() alone. */
export interface RouterPublisher {
  readonly name: 'router'
  readonly destinations: readonly RoutedPublisher[]
}

/** A publisher, under the name that its router gives it, and what it gets. */
export interface RoutedPublisher {
  readonly name: string
  readonly publisher: Publisher
  readonly topics: TopicScope
}

export interface TopicScope {
  /** These and no others; null for all. */
  readonly only: readonly string[] | null
  /** But not these. */
  readonly except: readonly string[]
}

/** Everything that was checked here; what only looks like a router is none. */
const ROUTERS = new WeakSet<object>()

export const EVERY_TOPIC: TopicScope = Object.freeze({ only: null, except: [] })

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

/** Every topic that has a publisher; null if all of them have. */
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
        `${owner} is the same as '${twin}', and would be connected and closed twice; give both their topics to one name`,
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
  throw new OutboxOptionsError(`${what} ${show(name)}, which is no name in publishers${remedy}`)
}
