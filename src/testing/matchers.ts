// Matchers for a recording publisher, for vitest and jest: expect.extend(outboxMatchers). Messages list types and ids, and
// payloads only on request, because test logs are often public.
import { rejectUnknown, requireBoolean } from '../checks/checks.ts'
import { show } from '../checks/duration.ts'
import type { RecordedEvent } from './recording-publisher.ts'

/** What an event has to have. Fields that are left out do not matter. `expect.objectContaining()` and the like work. */
export type ExpectedEvent = { readonly [Field in keyof RecordedEvent]?: unknown }

export interface OutboxMatchers<R = unknown> {
  /** At least one such event was published. */
  toHavePublished(expected: ExpectedEvent): R
  /** Exactly so many such events were published, or events at all. */
  toHavePublishedTimes(times: number, expected?: ExpectedEvent): R
  /** These events were published in this order. Others may be among them. */
  toHavePublishedInOrder(expected: readonly ExpectedEvent[]): R
  /** Nothing was published. Call drain() first. */
  toHavePublishedNothing(): R
}

export interface MatcherOptions {
  /** Whether messages show payloads and headers. @default false */
  payloads?: boolean
}

/** What vitest and jest both pass as `this`. */
interface Context {
  readonly equals: (a: unknown, b: unknown) => boolean
}

interface Verdict {
  readonly pass: boolean
  readonly message: () => string
}

type Matcher<Expected extends unknown[]> = (
  this: Context,
  received: unknown,
  ...expected: Expected
) => Verdict

type Matchers = {
  [Name in keyof OutboxMatchers]: Matcher<Parameters<OutboxMatchers[Name]>>
}

const FIELDS = [
  'id',
  'type',
  'aggregateType',
  'aggregateId',
  'topic',
  'payload',
  'headers',
] as const

export function createOutboxMatchers(options: MatcherOptions = {}): Matchers {
  rejectUnknown('createOutboxMatchers()', options, ['payloads'])
  const payloads = requireBoolean('payloads', options.payloads ?? false)
  const list = (events: readonly RecordedEvent[]) =>
    events.length === 0
      ? 'Nothing was published.'
      : `Published:\n${events.map((event) => `  ${describe(event, payloads)}`).join('\n')}`
  const wanted = (expected: ExpectedEvent) => describeExpected(expected, payloads)

  return {
    toHavePublished(received, expected) {
      const published = publishedBy(received, expected)
      const pass = published.some((event) => isMatch(this, event, expected))
      const message = () => {
        const text = `expected ${pass ? 'no' : 'an'} event ${wanted(expected)} to be published`
        return [text, pass ? [] : nearMiss(this, published, expected), list(published)]
          .flat()
          .join('\n')
      }
      return { pass, message }
    },
    toHavePublishedTimes(received, times, expected = {}) {
      const published = publishedBy(received, expected)
      if (!(Number.isInteger(times) && times >= 0))
        throw new TypeError(`toHavePublishedTimes() takes a whole number, got ${show(times)}`)
      const found = published.filter((event) => isMatch(this, event, expected)).length
      const pass = found === times
      const text = `expected ${pass ? 'another number than ' : ''}${times} events ${wanted(expected)} to be published, found ${found}`
      return { pass, message: () => `${text}\n${list(published)}` }
    },
    toHavePublishedInOrder(received, expected) {
      const published = publishedBy(received, ...expected)
      if (expected.length === 0)
        throw new TypeError('toHavePublishedInOrder() takes the events in their order, got none')
      let next = 0
      for (const event of published) {
        if (next < expected.length && isMatch(this, event, expected[next]!)) next += 1
      }
      const pass = next === expected.length
      const message = () => {
        if (pass) return `expected another order\n${list(published)}`
        const after = next === 0 ? '' : ` after one ${wanted(expected[next - 1]!)}`
        return `expected an event ${wanted(expected[next]!)} to be published${after}\n${list(published)}`
      }
      return { pass, message }
    },
    toHavePublishedNothing(received) {
      const published = publishedBy(received)
      const pass = published.length === 0
      const text = pass ? 'expected something to be published' : 'expected nothing to be published'
      return { pass, message: () => `${text}\n${list(published)}` }
    },
  }
}

/** For `expect.extend()`, of vitest and of jest. */
export const outboxMatchers: Matchers = createOutboxMatchers()

function publishedBy(received: unknown, ...expected: readonly unknown[]): readonly RecordedEvent[] {
  for (const one of expected) rejectUnknown('the expected event', one, FIELDS)
  const { published } = (received ?? {}) as { published?: unknown }
  if (Array.isArray(published)) return published as RecordedEvent[]
  throw new TypeError('this matcher takes a recordingPublisher(): expect(publisher)')
}

function isMatch(
  { equals }: Context,
  event: RecordedEvent,
  expected: ExpectedEvent,
  fields: readonly (keyof RecordedEvent)[] = FIELDS,
): boolean {
  return fields.every((field) => !(field in expected) || equals(event[field], expected[field]))
}

/** A type that is right with a payload that is not is the usual mistake. */
function nearMiss(
  context: Context,
  published: readonly RecordedEvent[],
  expected: ExpectedEvent,
): string[] {
  const others = FIELDS.filter((field) => field !== 'payload')
  const count = published.filter((event) => isMatch(context, event, expected, others)).length
  if (count === 0 || !('payload' in expected)) return []
  return [`${count} of those published differ in the payload alone`]
}

function describe(event: RecordedEvent, withPayload: boolean): string {
  const { id, type, aggregateType, aggregateId, topic, payload, headers } = event
  const text = `${type} ${id} of ${aggregateType} ${aggregateId} to ${topic}`
  return withPayload ? `${text} ${JSON.stringify({ payload, headers })}` : text
}

function describeExpected(expected: ExpectedEvent, withPayload: boolean): string {
  const fields = FIELDS.filter((field) => field in expected).map((field) => {
    const isShown = withPayload || (field !== 'payload' && field !== 'headers')
    return isShown ? `${field}: ${JSON.stringify(expected[field])}` : field
  })
  return fields.length === 0 ? 'of any kind' : `with { ${fields.join(', ')} }`
}
