// Where one can go, with what waits there; how fresh the data is; who is looking.
import { useEffect, useRef } from 'preact/hooks'
import type { Overview } from '../../api.ts'
import { count, number } from '../data/format.ts'
import { linkTo, VIEWS, type ViewName } from '../data/route.ts'
import { useSession } from '../data/session.ts'
import { type Theme, useTheme } from '../data/theme.ts'
import type { Verdict } from '../data/verdict.ts'
import { Icon, type IconName } from '../parts/icon.tsx'
import { Refresh } from './refresh.tsx'

const WORDS: Record<ViewName, string> = {
  overview: 'Overview',
  events: 'Events',
  failures: 'Failures',
  topics: 'Topics',
  instances: 'Instances',
  doctor: 'Doctor',
}
const THEME_ICONS: Record<Theme, IconName> = { system: 'system', light: 'sun', dark: 'moon' }

export function Sidebar({ view, verdict }: { view: ViewName; verdict: Verdict }) {
  const { overview } = useSession()
  const nav = useRef<HTMLElement>(null)
  useEffect(() => {
    const current = nav.current?.querySelector('[aria-current]')
    current?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
    // What waits there makes a link wider when it comes.
  }, [view, overview.data === null])
  return (
    <header class="sidebar">
      <div class="brand">
        <strong>aftercommit</strong>
        <span class="soft">{overview.data?.table ?? ' '}</span>
      </div>
      <a class={`verdict-chip verdict-${verdict.state}`} href={linkTo('overview')}>
        <Icon name={verdict.state} />
        {verdict.word}
      </a>
      <nav ref={nav} aria-label="Views">
        <ul>
          {VIEWS.map((name) => (
            <li key={name}>
              <a href={linkTo(name)} aria-current={name === view ? 'page' : undefined}>
                <Icon name={name} />
                {WORDS[name]}
                <Waiting view={name} overview={overview.data} />
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="sidebar-foot">
        <Role overview={overview.data} />
        <Refresh />
        <ThemeButton />
      </div>
    </header>
  )
}

function Waiting({ view, overview }: { view: ViewName; overview: Overview | null }) {
  if (!overview) return null
  const { dead, pauses, instances, findings } = overview
  if (view === 'failures' && dead.count > 0) {
    return (
      <span class="waiting">
        {count(dead)}
        <span class="visually-hidden"> dead letters</span>
      </span>
    )
  }
  if (view === 'topics' && pauses.length > 0) {
    return <span class="waiting">{number(pauses.length)} paused</span>
  }
  const found = findings.filter(({ link }) => link?.to === 'doctor').length
  if (view === 'doctor' && found > 0) return <span class="waiting">{number(found)} found</span>
  const lost = instances.filter(({ isMissed }) => isMissed).length
  if (view === 'instances' && lost > 0) return <span class="waiting">{number(lost)} lost</span>
  return null
}

function Role({ overview }: { overview: Overview | null }) {
  if (!overview) return null
  if (overview.acting) {
    const { by } = overview.acting
    return by ? <p title="Actions are logged under this name">Acting as {by}</p> : null
  }
  return (
    <p
      class="read-only"
      title="The server lets you look. To retry, discard, pause or purge, ask its operator for the right to act."
    >
      <strong>Read only</strong>
      <span class="soft role-why">The server lets you look, not act.</span>
    </p>
  )
}

function ThemeButton() {
  const [theme, next] = useTheme()
  return (
    <button type="button" class="theme" onClick={next} aria-label={`Theme: ${theme}. Change it`}>
      <Icon name={THEME_ICONS[theme]} />
      <span>{theme}</span>
    </button>
  )
}
