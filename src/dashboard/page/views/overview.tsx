// Is it well, and if not, where? The verdict first, then figures, the last hours, and where trouble would show.
import { parseChoice, usePast } from '../data/history.ts'
import { judge } from '../data/verdict.ts'
import { useRefreshRate } from '../data/refresh.ts'
import { useSession } from '../data/session.ts'
import { Figures } from './figures.tsx'
import { History } from './history.tsx'
import { LatencyPanel, CircuitsPanel, PausesPanel, RunningPanel } from './overview-panels.tsx'
import { TopFailures } from './top-failures.tsx'
import { VerdictBand } from './verdict-band.tsx'

export function OverviewView({ query }: { query: string }) {
  const { overview, samples } = useSession()
  const [rate] = useRefreshRate()
  const choice = parseChoice(query)
  const isFiltered = choice.instance !== null || choice.topic !== null
  const past = usePast(choice, samples)
  const { data, error, at, refresh } = overview
  // Nothing was ever seen, so there is nothing old to show.
  if (error && !data) {
    return (
      <>
        <h1 class="visually-hidden" tabIndex={-1}>
          Overview
        </h1>
        <VerdictBand verdict={judge(data, error)} findings={[]} at={at} />
        <p class="calm">
          {rate === 0
            ? 'The page does not try again by itself.'
            : `The page tries again every ${rate} seconds.`}
          <button type="button" class="button button-small" onClick={refresh}>
            Try now
          </button>
        </p>
      </>
    )
  }
  return (
    <div class={`overview ${error && data ? 'is-stale' : ''}`}>
      <h1 class="visually-hidden" tabIndex={-1}>
        Overview
      </h1>
      <VerdictBand verdict={judge(data, error)} findings={data?.findings ?? []} at={at} />
      <Figures overview={data} points={isFiltered ? samples : past.points} />
      <History choice={choice} past={past} />
      <div class="columns">
        <div class="stack">
          <TopFailures />
          <RunningPanel overview={data} />
        </div>
        <div class="stack">
          <CircuitsPanel overview={data} />
          <PausesPanel overview={data} />
          <LatencyPanel overview={data} />
        </div>
      </div>
    </div>
  )
}
