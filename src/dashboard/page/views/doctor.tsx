// The checks of `aftercommit doctor`, run on arrival, on a click and after a purge, not all the time, because some of them
// read a lot; and the purge of old events.
import { useEffect, useState } from 'preact/hooks'
import type { DoctorAnswer } from '../../api.ts'
import { purge } from '../data/acts.ts'
import { type ApiError, get } from '../data/client.ts'
import { duration } from '../data/format.ts'
import { asApiError } from '../data/poll.ts'
import { useSession } from '../data/session.ts'
import { Failed, Loading, Notice } from '../parts/notice.tsx'
import { Panel, ViewHead } from '../parts/panel.tsx'
import { Copyable } from '../parts/copy.tsx'
import { Time } from '../parts/time.tsx'
import { Findings } from './verdict-band.tsx'

interface Visit {
  readonly answer: DoctorAnswer | null
  readonly error: ApiError | null
  readonly isRunning: boolean
}

export function DoctorView() {
  const { mayAct } = useSession()
  const [{ answer, error, isRunning }, setVisit] = useState<Visit>(ARRIVAL)
  // The findings stay in place until the next response is there.
  const run = () => {
    setVisit((before) => ({ ...before, isRunning: true }))
    get<DoctorAnswer>('doctor').then(
      (came) => setVisit({ answer: came, error: null, isRunning: false }),
      (thrown: unknown) =>
        setVisit((before) => ({ ...before, error: asApiError(thrown), isRunning: false })),
    )
  }
  useEffect(run, [])
  return (
    <>
      <ViewHead
        title="Doctor"
        lead="Looks at the schema, rights, instances, waiting events, vacuum, clocks, old transactions and replication slots. It changes nothing."
      >
        <button type="button" class="button button-primary" disabled={isRunning} onClick={run}>
          {isRunning ? 'Checking…' : 'Check again'}
        </button>
      </ViewHead>
      <div class="panel" aria-live="polite" aria-busy={isRunning}>
        {error ? (
          <Failed error={error} retry={run} />
        ) : answer ? (
          <Answer answer={answer} />
        ) : (
          <Loading what="the findings" />
        )}
      </div>
      {mayAct && <PurgePanel checkAgain={run} />}
    </>
  )
}

const ARRIVAL: Visit = { answer: null, error: null, isRunning: true }

function PurgePanel({ checkAgain }: { checkAgain: () => void }) {
  const { overview, ask } = useSession()
  const retention = overview.data?.retention
  if (!retention) {
    return (
      <Panel title="Purge">
        <p class="calm soft">
          Neither this server nor an instance says how long events are kept, so it deletes none. Run{' '}
          <Copyable text="aftercommit purge --older-than <duration>" what="the command" />
        </p>
      </Panel>
    )
  }
  const { publishedMs, deadMs, isOfInstances } = retention
  const dead = deadMs === null ? '' : `, and dead letters of more than ${duration(deadMs)}`
  return (
    <Panel title="Purge" note="An instance does this by itself unless its option cleanup is off.">
      <div class="inline-form purge">
        <p>{`Deletes events that were published more than ${duration(publishedMs)} ago${dead}${isOfInstances ? ', the longest retention that an instance has' : ''}.`}</p>
        <button
          type="button"
          class="button"
          onClick={() => void ask(purge()).then((isDone) => isDone && checkAgain())}
        >
          Count and purge…
        </button>
      </div>
    </Panel>
  )
}

function Answer({ answer }: { answer: DoctorAnswer }) {
  return (
    <>
      {answer.findings.length === 0 ? (
        <Notice icon="well" title="Nothing found" />
      ) : (
        <Findings findings={answer.findings} />
      )}
      <p class="checked soft">
        Checked <Time at={answer.now} />: {answer.checked.join(', ')}.
        {answer.skipped.map(({ check, reason }) => (
          <span key={check} class="skipped">
            Not checked: {check} ({reason}).
          </span>
        ))}
      </p>
    </>
  )
}
