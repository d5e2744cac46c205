// The frame of the page: where one is, how it is, and what just happened. It polls the overview whatever is shown, so the verdict
// is on every view and in the title of the tab.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import type { Act } from './data/acts.ts'
import { useOverview } from './data/overview.ts'
import { type Route, useRoute } from './data/route.ts'
import { SessionContext } from './data/session.ts'
import { judge } from './data/verdict.ts'
import { Confirm } from './parts/confirm.tsx'
import { SearchBox } from './parts/search-box.tsx'
import { TokenDialog } from './parts/token-dialog.tsx'
import { DoctorView } from './views/doctor.tsx'
import { EventView } from './views/event.tsx'
import { EventsView } from './views/events.tsx'
import { FailuresView } from './views/failures.tsx'
import { InstancesView } from './views/instances.tsx'
import { OverviewView } from './views/overview.tsx'
import { Sidebar } from './views/sidebar.tsx'
import { TopicsView } from './views/topics.tsx'

interface Asked {
  readonly act: Act
  readonly answer: (isDone: boolean) => void
}

export function App() {
  const route = useRoute()
  const { overview, samples } = useOverview()
  const [asked, setAsked] = useState<Asked | null>(null)
  const [outcome, setOutcome] = useState('')
  const main = useFocusOnArrival(route)
  const verdict = judge(overview.data, overview.error)

  useEffect(() => {
    document.title = `${verdict.word} · ${overview.data?.table ?? 'aftercommit'}`
  }, [verdict.word, overview.data?.table])
  useEffect(() => {
    if (!outcome) return
    const timer = setTimeout(() => setOutcome(''), 12_000)
    return () => clearTimeout(timer)
  }, [outcome])

  const ask = useCallback((act: Act) => {
    setOutcome('')
    return new Promise<boolean>((answer) => setAsked({ act, answer }))
  }, [])
  const mayAct = overview.data !== null && overview.data.acting !== null
  return (
    <SessionContext.Provider value={{ overview, samples, mayAct, ask }}>
      <a class="skip" href="#main" onClick={skipTo(main)}>
        Skip to the content
      </a>
      <Sidebar view={route.view} verdict={verdict} />
      <div class="page">
        <SearchBox />
        <main id="main" ref={main} tabIndex={-1}>
          <View route={route} />
        </main>
      </div>
      <div class="outcome" role="status" aria-live="polite">
        {outcome && <p>{outcome}</p>}
      </div>
      {asked && (
        <Confirm
          act={asked.act}
          done={(told) => {
            setAsked(null)
            setOutcome(told ?? '')
            asked.answer(told !== null)
          }}
        />
      )}
      <TokenDialog />
    </SessionContext.Provider>
  )
}

function View({ route }: { route: Route }) {
  const { view, id, query } = route
  if (view === 'events') return id ? <EventView id={id} /> : <EventsView query={query} />
  if (view === 'failures') return <FailuresView />
  if (view === 'topics') return <TopicsView />
  if (view === 'instances') return <InstancesView />
  if (view === 'doctor') return <DoctorView />
  return <OverviewView query={query} />
}

/** A screen reader hears where a link has led: the focus goes to the heading of the new view. */
function useFocusOnArrival({ view, id }: Route) {
  const main = useRef<HTMLElement>(null)
  const isFirst = useRef(true)
  useEffect(() => {
    if (isFirst.current) {
      isFirst.current = false
      return
    }
    scrollTo(0, 0)
    const heading = main.current?.querySelector<HTMLElement>('h1') ?? main.current
    heading?.focus({ preventScroll: true })
  }, [view, id])
  return main
}

// The address after `#` is the view's, so the link cannot do it alone.
function skipTo(main: { current: HTMLElement | null }) {
  return (event: MouseEvent) => {
    event.preventDefault()
    main.current?.focus()
  }
}
