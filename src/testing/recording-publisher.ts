// A publisher for tests: it records what it delivers, and fails, hangs or simulates an outage on demand. It keeps the
// contract of every publisher: behind an event that fails, later ones of its lane are held.
import { rejectUnknown, requireBoolean, requireOneOf } from '../checks/checks.ts'
import { show } from '../checks/duration.ts'
import { OutboxOptionsError } from '../errors.ts'
import type { EventRef, OutboxEvent } from '../event/event.ts'
import type { PublishFailure, PublishResult } from '../event/publish-result.ts'
import type { OrderScope, Publisher, PublishRules } from '../publishers/publisher.ts'

/** An event as the publisher received it, with its payload parsed. */
export interface RecordedEvent extends EventRef {
  readonly payload: unknown
  readonly headers: Readonly<Record<string, string>>
}

export interface RecordingPublisherOptions {
  /** @default 'recording' */
  name?: string
  /** As a Kafka publisher has it, or a RabbitMQ publisher and handlers. @default 'publisher' */
  orderScope?: OrderScope
}

export interface PublisherFailure {
  /**
   * `'rejected'`: the event is tried again after a backoff. `'permanent'`: it becomes a dead letter at once. `'transient'`: the
   * broker is out of reach, which uses up no attempt. @default 'rejected'
   */
  as?: 'rejected' | 'permanent' | 'transient'
  /** Which events fail. @default all */
  when?: (event: RecordedEvent) => boolean
  /** How many of them. `Infinity` for all, until recover(). @default 1 */
  times?: number
  /** Their error. @default one that names fail() as its cause */
  error?: Error
  /** For `'transient'`: whether only the event's topic is out of reach. @default false */
  onlyTopic?: boolean
}

export interface RecordingPublisher extends Publisher {
  /** What was delivered, in order. An event that was delivered twice is in it twice. */
  readonly published: readonly RecordedEvent[]
  /** Everything that the outbox tried to deliver, in order. */
  readonly attempted: readonly RecordedEvent[]
  /** Lets the next event fail, or those that the failure describes. Failures add up; the first one that applies counts. */
  fail(failure?: PublisherFailure): void
  /** From here on, sends do not settle until recover(). */
  hang(): void
  /** From here on, the broker is out of reach until recover(). */
  goAway(): void
  /** Ends fail(), hang() and goAway(). Sends that hang are delivered. */
  recover(): void
  /** Forgets what was published and attempted. */
  clear(): void
}

interface Rule extends Required<Omit<PublisherFailure, 'error'>> {
  readonly error: Error | null
  left: number
}

export function recordingPublisher(options: RecordingPublisherOptions = {}): RecordingPublisher {
  rejectUnknown('recordingPublisher()', options, ['name', 'orderScope'])
  const { name = 'recording', orderScope = 'publisher' } = options
  const published: RecordedEvent[] = []
  const attempted: RecordedEvent[] = []
  let rules: Rule[] = []
  let isAway = false
  let isHanging = false
  const hung: (() => void)[] = []

  function failureOf(event: RecordedEvent): PublishFailure | null {
    if (isAway)
      return failure(
        'transient',
        new Error('the publisher is out of reach, because the test called goAway()'),
      )
    const rule = rules.find(({ left, when }) => left > 0 && when(event))
    if (!rule) return null
    rule.left -= 1
    const error =
      rule.error ?? new Error(`the publisher failed (${rule.as}), because the test called fail()`)
    return failure(rule.as, error, rule.onlyTopic)
  }

  function deliver(events: readonly OutboxEvent[], { deadLettersHold = false }: PublishRules) {
    const held = new Set<number>()
    return events.map((event): PublishResult => {
      if (held.has(event.lane)) return failure('held', new Error('an earlier event failed'))
      const recorded = toRecorded(event)
      attempted.push(recorded)
      const failed = failureOf(recorded)
      if (!failed) {
        published.push(recorded)
        const { topic, aggregateId: key } = event
        return { ok: true, topic, key, partition: null, offset: null }
      }
      if (failed.kind !== 'permanent' || deadLettersHold) held.add(event.lane)
      return failed
    })
  }

  return {
    name,
    orderScope,
    published,
    attempted,
    async publish(events, publishRules = {}) {
      if (isHanging) await new Promise<void>((resolve) => hung.push(resolve))
      return deliver(events, publishRules)
    },
    fail(given = {}) {
      rules.push(toRule(given))
    },
    hang() {
      isHanging = true
    },
    goAway() {
      isAway = true
    },
    recover() {
      rules = []
      isAway = false
      isHanging = false
      for (const goOn of hung.splice(0)) goOn()
    },
    clear() {
      published.length = 0
      attempted.length = 0
    },
  }
}

function toRule(given: PublisherFailure): Rule {
  rejectUnknown('fail()', given, ['as', 'when', 'times', 'error', 'onlyTopic'])
  const { as = 'rejected', when = () => true, times = 1, error = null, onlyTopic = false } = given
  requireOneOf('as', as, ['rejected', 'permanent', 'transient'])
  requireBoolean('onlyTopic', onlyTopic)
  if (typeof when !== 'function') {
    throw new OutboxOptionsError(`when must be a function of the event, got ${show(when)}`)
  }
  if (!(times === Number.POSITIVE_INFINITY || (Number.isInteger(times) && times >= 1))) {
    throw new OutboxOptionsError(
      `times must be a whole number from 1, or Infinity, got ${show(times)}`,
    )
  }
  return { as, when, times, error, onlyTopic, left: times }
}

function failure(kind: PublishFailure['kind'], error: Error, onlyTopic = false): PublishFailure {
  return { ok: false, kind, error, blames: onlyTopic ? 'topic' : 'broker' }
}

function toRecorded(event: OutboxEvent): RecordedEvent {
  const { id, type, aggregateType, aggregateId, topic, headers } = event
  const payload = JSON.parse(event.payload) as unknown
  return { id, type, aggregateType, aggregateId, topic, payload, headers }
}
