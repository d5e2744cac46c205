// The verdict in one word and one sentence, and the findings behind it: what, what to do, where to look.
import type { Finding } from '../../api.ts'
import { moveTo } from '../data/acts.ts'
import { useTick } from '../data/clock.ts'
import { relative, toSentence } from '../data/format.ts'
import { linkTo, type ViewName } from '../data/route.ts'
import { useSession } from '../data/session.ts'
import type { Verdict } from '../data/verdict.ts'
import { SeverityBadge } from '../parts/badge.tsx'
import { Prose } from '../parts/copy.tsx'
import { Icon } from '../parts/icon.tsx'

const PLACES: Record<NonNullable<Finding['link']>['to'], { view: ViewName; words: string }> = {
  events: { view: 'events', words: 'Show the events' },
  groups: { view: 'failures', words: 'Show the failures' },
  topics: { view: 'topics', words: 'Show the topics' },
  instances: { view: 'instances', words: 'Show the instances' },
  doctor: { view: 'doctor', words: 'Ask the doctor' },
}

interface Props {
  readonly verdict: Verdict
  readonly findings: readonly Finding[]
  readonly at: number
}

export function VerdictBand({ verdict, findings, at }: Props) {
  const { state, word, sentence } = verdict
  return (
    <section class={`verdict verdict-${state}`} aria-label="Verdict">
      <div class="verdict-line" role="status">
        <Icon name={state} />
        <p>
          <strong>{word}</strong>
          <span>{sentence}</span>
        </p>
        {state === 'unreachable' && at > 0 && <Age at={at} />}
      </div>
      {findings.length > 0 && <Findings findings={findings} />}
    </section>
  )
}

export function Findings({ findings }: { findings: readonly Finding[] }) {
  return (
    <ul class="findings">
      {findings.map((finding, index) => (
        <li key={`${finding.kind} ${index}`}>
          <SeverityBadge severity={finding.severity} />
          <div>
            <p class="finding-what">{toSentence(finding.what)}</p>
            {finding.remedy && (
              <p class="finding-remedy">
                <Prose text={finding.remedy} />
              </p>
            )}
          </div>
          <span class="finding-ways">
            {finding.link && (
              <a class="more" href={linkTo(PLACES[finding.link.to].view, finding.link.query)}>
                {PLACES[finding.link.to].words}
                <Icon name="right" />
              </a>
            )}
            {finding.move !== undefined && <MoveButton topic={finding.move} />}
          </span>
        </li>
      ))}
    </ul>
  )
}

function MoveButton({ topic }: { topic: string }) {
  const { mayAct, ask, overview } = useSession()
  if (!mayAct) return null
  return (
    <button
      type="button"
      class="button button-small"
      aria-label={`Move the events of ${topic}`}
      onClick={() => void ask(moveTo(topic)).then((isDone) => isDone && overview.refresh())}
    >
      Move…
    </button>
  )
}

/** Old data is shown with its age. */
function Age({ at }: { at: number }) {
  useTick(1000)
  return <p class="verdict-age">Below is what it said {relative(at, Date.now())}.</p>
}
