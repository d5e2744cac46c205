// One failure group: how many, what and where, since when, an example, and what can be done with all of it.
import type { GroupShown, Selection } from '../../api.ts'
import { discard, retry } from '../data/acts.ts'
import { formatFilter, NO_FILTER } from '../data/event-filter.ts'
import { count } from '../data/format.ts'
import { linkTo, linkToEvent } from '../data/route.ts'
import { useSession } from '../data/session.ts'
import { StatusBadge } from '../parts/badge.tsx'
import { Time } from '../parts/time.tsx'

export function keyOf({ status, type, topic, error }: GroupShown): string {
  return JSON.stringify([status, type, topic, error])
}

export function FailureGroup({ group, refresh }: { group: GroupShown; refresh: () => void }) {
  const { mayAct, ask } = useSession()
  const { status, type, topic, error, example } = group
  const selection: Selection = { status, type, topic, error }
  const own = { ...NO_FILTER, status: [status], type, topic, error }
  const run = (act: Parameters<typeof ask>[0]) =>
    void ask(act).then((isDone) => isDone && refresh())
  return (
    <li class="group">
      <p class="group-count">
        {count(group)}
        <span class="unit"> {group.count === 1 ? 'event' : 'events'}</span>
      </p>
      <div class="group-what">
        <p class="group-error">{error}</p>
        <p class="soft">
          <StatusBadge status={status} /> <strong>{type}</strong> to <strong>{topic}</strong>
        </p>
        <p class="soft">
          First <Time at={group.firstAt} />, last <Time at={group.lastAt} />
          <span class="dot" />
          <a href={linkToEvent(example.id)}>Example</a>
          <span class="dot" />
          <a href={linkTo('events', formatFilter(own))}>All of them</a>
        </p>
        {example.error !== error && <p class="example-error">{example.error}</p>}
      </div>
      {mayAct && (
        <div class="actions">
          <button
            type="button"
            class="button"
            onClick={() => run(retry(selection, 'this group'))}
            aria-label={`Retry the group: ${error}`}
          >
            Retry…
          </button>
          <button
            type="button"
            class="button button-quiet"
            onClick={() => run(discard(selection, 'this group'))}
            aria-label={`Discard the group: ${error}`}
          >
            Discard…
          </button>
        </div>
      )}
    </li>
  )
}
