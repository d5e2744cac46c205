// How fresh the data is, and how often the page asks.
import { useTick } from '../data/clock.ts'
import { relative } from '../data/format.ts'
import { RATES, type Rate, refreshNow, useRefreshRate } from '../data/refresh.ts'
import { useSession } from '../data/session.ts'
import { Icon } from '../parts/icon.tsx'

const WORDS: Record<Rate, string> = {
  5: '5 s',
  15: '15 s',
  60: '1 min',
  0: 'off',
}

export function Refresh() {
  const { overview } = useSession()
  const [rate, choose] = useRefreshRate()
  useTick(1000)
  return (
    <>
      <p class="soft">{overview.at === 0 ? ' ' : `Updated ${relative(overview.at, Date.now())}`}</p>
      <div class="refresh">
        <button type="button" class="quiet-icon" aria-label="Refresh now" onClick={refreshNow}>
          <Icon name="refresh" />
          Refresh
        </button>
        <select
          aria-label="Refresh"
          value={rate}
          onChange={({ currentTarget }) => choose(Number(currentTarget.value) as Rate)}
        >
          {RATES.map((one) => (
            <option key={one} value={one}>
              {WORDS[one]}
            </option>
          ))}
        </select>
      </div>
    </>
  )
}
