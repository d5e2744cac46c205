// Is it well, and if not, where? The verdict first, then figures, the last hour, and where trouble would show.
import { judge } from '../data/verdict.ts'
import { useSession } from '../data/session.ts'
import { Figures } from './figures.tsx'
import { History } from './history.tsx'
import { LatencyPanel, CircuitsPanel, PausesPanel, RunningPanel } from './overview-panels.tsx'
import { TopFailures } from './top-failures.tsx'
import { VerdictBand } from './verdict-band.tsx'

export function OverviewView() {
  const { overview, samples } = useSession()
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
          The page tries again every five seconds.
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
      <Figures overview={data} samples={samples} />
      <History samples={samples} sampleMs={data?.sampleMs ?? 5000} />
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
