// The overview, polled: the server sends only the samples that the page does not have.
import { useRef } from 'preact/hooks'
import type { Overview } from '../../api.ts'
import { get } from './client.ts'
import { learnTime } from './clock.ts'
import { type Polled, usePoll } from './poll.ts'
import { addSamples, type Point } from './samples.ts'

export function useOverview(): { overview: Polled<Overview>; samples: readonly Point[] } {
  const samples = useRef<readonly Point[]>([])
  const overview = usePoll('overview', async (signal) => {
    const since = samples.current.at(-1)?.at
    const path = since === undefined ? 'overview' : `overview?since=${since}`
    const came = await get<Overview>(path, signal)
    learnTime(came.now)
    const points = came.samples.map((sample) => ({ ...sample, stepMs: came.sampleMs }))
    samples.current = addSamples(samples.current, points, Date.parse(came.now))
    return came
  })
  return { overview, samples: samples.current }
}
