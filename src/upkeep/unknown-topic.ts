// Whether the name of a topic may be mistyped, before it is paused or events are moved to it. Only reads.
import { isDenied } from '../store/database.ts'
import type { BrowseStore } from '../store/outbox/browse-store.ts'
import type { ControlStore } from '../store/outbox/control-store.ts'
import type { Store } from '../store/outbox/outbox-store.ts'
import type { PreviewStore } from '../store/outbox/preview/preview-store.ts'

export interface TopicParts {
  readonly store: {
    readonly browse: Pick<BrowseStore, 'list'>
    readonly control: Pick<ControlStore, 'instances'>
  }
  readonly preview: Pick<PreviewStore, 'countWaiting'>
}

/** True if no event waits for it, none of the newest is for it, and no instance names it. False if the role may not look. */
export async function isUnknownTopic(parts: TopicParts, topic: string): Promise<boolean> {
  try {
    return !(await isKnown(parts, topic))
  } catch (error) {
    if (isDenied(error)) return false
    throw error
  }
}

async function isKnown({ store, preview }: TopicParts, topic: string): Promise<boolean> {
  const waiting = await preview.countWaiting(topic, 1)
  if (waiting.count > 0) return true
  const instances = await store.control.instances()
  const isNamed = instances.some(({ publishers }) =>
    publishers.some(({ topics }) => topics?.includes(topic)),
  )
  if (isNamed) return true
  // Looks at no more rows than one page of a search does.
  const page = { limit: 1, after: null, order: 'newest' } as const
  const { events } = await store.browse.list({ topic }, page)
  return events.length > 0
}

/** The newest events that are looked at. */
const RECENT = 200

/** Topics to choose from: those that instances name or have sent to lately, and those of the newest events. Null if the role may not look. */
export async function findTopics({
  browse,
  control,
}: Pick<Store<never>, 'browse' | 'control'>): Promise<string[] | null> {
  try {
    const page = { limit: RECENT, after: null, order: 'newest' } as const
    const [instances, histories, { events }] = await Promise.all([
      control.instances(),
      control.histories(),
      browse.list({}, page),
    ])
    const topics = [
      ...instances.flatMap(({ publishers }) => publishers.flatMap((one) => one.topics ?? [])),
      ...histories.flatMap(({ history }) => history.topics),
      ...events.map(({ topic }) => topic),
    ]
    return [...new Set(topics)].toSorted()
  } catch (error) {
    if (isDenied(error)) return null
    throw error
  }
}
