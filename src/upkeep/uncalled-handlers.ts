// Handlers that no event seems to reach, because the topic of their event type goes to another publisher. A warning and not a
// refusal: events that were saved before the topic changed still need them, and so does one that is emitted with a topic of its own.
import { topicOfType } from '../event/topic.ts'
import type { ResolvedOptions } from '../options/options.ts'
import { destinationByTopic, type RoutedPublisher } from '../publishers/router.ts'
import type { Logger } from '../runtime/logger.ts'

type Rules = Pick<ResolvedOptions, 'destinations' | 'topic' | 'catalog'>

/** `types`: the event types that have a handler at these destinations. Where a topic is known from an event alone, nothing is said. */
export function warnOfUncalled(
  { destinations, topic: rule, catalog }: Rules,
  handling: readonly RoutedPublisher[],
  types: Iterable<string>,
  logger: Logger,
): void {
  const destinationOf = destinationByTopic(destinations)
  for (const type of types) {
    const topic = topicOfType(type, rule, catalog)
    if (topic === null) continue
    const destination = destinationOf(topic)
    if (handling.includes(destination)) continue
    logger.warn(
      { type, topic, publisher: destination.name },
      'the handler of this event type is not called, because its topic goes to another publisher; give the type a topic that goes to the handlers, route this topic to them, or emit a second event for the handler',
    )
  }
}
