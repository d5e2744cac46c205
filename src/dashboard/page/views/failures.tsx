// What failed, by cause: fix the cause, then retry the group.
import type { GroupsAnswer } from '../../api.ts'
import { get } from '../data/client.ts'
import { usePoll } from '../data/poll.ts'
import { useSession } from '../data/session.ts'
import { Loaded, Notice } from '../parts/notice.tsx'
import { ViewHead } from '../parts/panel.tsx'
import { FailureGroup, keyOf } from './failure-group.tsx'

export function FailuresView() {
  const { overview } = useSession()
  const polled = usePoll('groups', (signal) => get<GroupsAnswer>('groups', signal))
  const refresh = () => {
    polled.refresh()
    overview.refresh()
  }
  return (
    <>
      <ViewHead
        title="Failures"
        lead="Dead letters and failing events, grouped by cause, the largest group first. Fix the cause, then retry the group."
      />
      <Loaded polled={polled} what="the failures">
        {({ groups }) =>
          groups.length === 0 ? (
            <Notice icon="well" title="No event fails">
              Events that the broker refuses, or that fail again and again, appear here with their
              cause.
            </Notice>
          ) : (
            <ul class="groups panel">
              {groups.map((group) => (
                <FailureGroup key={keyOf(group)} group={group} refresh={refresh} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </>
  )
}
