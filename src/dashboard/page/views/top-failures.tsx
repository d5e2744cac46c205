// The largest failure groups on the overview; the view of failures has all of them.
import type { GroupsAnswer } from '../../api.ts'
import { get } from '../data/client.ts'
import { count } from '../data/format.ts'
import { usePoll } from '../data/poll.ts'
import { linkTo } from '../data/route.ts'
import { StatusBadge } from '../parts/badge.tsx'
import { Icon } from '../parts/icon.tsx'
import { Loaded } from '../parts/notice.tsx'
import { Panel } from '../parts/panel.tsx'
import { Time } from '../parts/time.tsx'
import { keyOf } from './failure-group.tsx'

const SHOWN = 5
// Grouping reads every failure, so it runs less often than the rest.
const EVERY_MS = 15_000

export function TopFailures() {
  const polled = usePoll('groups', (signal) => get<GroupsAnswer>('groups', signal), EVERY_MS)
  const tools = (
    <a class="more" href={linkTo('failures')}>
      All failures
    </a>
  )
  return (
    <Panel title="Failures by cause" tools={tools}>
      <Loaded polled={polled} what="the failures">
        {({ groups }) =>
          groups.length === 0 ? (
            <p class="calm">
              <Icon name="well" /> No event fails.
            </p>
          ) : (
            <ol class="causes">
              {groups.slice(0, SHOWN).map((group) => (
                <li key={keyOf(group)}>
                  <span class="cause-count">{count(group)}</span>
                  <div>
                    <p class="cause-error">{group.error}</p>
                    <p class="soft">
                      <StatusBadge status={group.status} /> {group.type} to {group.topic}, last{' '}
                      <Time at={group.lastAt} />
                    </p>
                  </div>
                </li>
              ))}
            </ol>
          )
        }
      </Loaded>
    </Panel>
  )
}
