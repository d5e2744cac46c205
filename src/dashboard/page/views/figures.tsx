// The five figures to know by heart, each with its unit and where it is heading. Every figure has its place from the start.
import type { ComponentChildren } from 'preact'
import type { CountAnswer, Overview, Sample } from '../../api.ts'
import { databaseNow } from '../data/clock.ts'
import { count, duration, number, rate } from '../data/format.ts'
import { linkTo } from '../data/route.ts'
import { type Point, type Trend, trendOf } from '../data/samples.ts'
import { Icon } from '../parts/icon.tsx'

interface Props {
  readonly overview: Overview | null
  readonly points: readonly Point[]
}

export function Figures({ overview, points }: Props) {
  // A rate takes two beats of an instance. Until then, there is what the instances wrote.
  const rated = points.findLast((point) => sum(point) !== null)
  const last = rated && isNew(rated) ? rated : undefined
  const latency = points.findLast((point) => point.latency !== null)?.latency
  const oldest = overview && (overview.oldestMs === null ? 'none' : duration(overview.oldestMs))
  return (
    <section class="figures" aria-label="Key figures">
      <Figure
        name="Backlog"
        value={overview && count(overview.pending)}
        unit={unitOf(overview?.pending)}
        link={linkTo('events', 'status=pending,failed&order=oldest')}
        trend={trendOf(points, ({ pending }) => pending)}
        show={(by) => number(by)}
      >
        {overview &&
          `${number(overview.due)} due, ${number(overview.retrying)} resting, ${number(overview.held)} held`}
      </Figure>
      <Figure
        name="Oldest waits"
        value={oldest}
        trend={trendOf(points, ({ oldestMs }) => oldestMs)}
        show={duration}
      >
        since it was saved
      </Figure>
      <Figure
        name="Throughput"
        value={last ? rateOf(sum(last)) : overview && '–'}
        unit="events/s"
        trend={trendOf(points, sum)}
        show={rate}
        isNeutral
      >
        {`${rateOf(last?.immediate)} immediate, ${rateOf(last?.fallback)} fallback`}
      </Figure>
      <Figure
        name="Latency p95"
        value={latency ? duration(latency.p95Ms) : overview && '–'}
        trend={trendOf(points, (sample) => sample.latency?.p95Ms ?? null)}
        show={duration}
      >
        {latency ? `p50 ${duration(latency.p50Ms)}, COMMIT to ack` : 'COMMIT to ack'}
      </Figure>
      <Figure
        name="Dead letters"
        value={overview && count(overview.dead)}
        unit={unitOf(overview?.dead)}
        link={linkTo('failures')}
        trend={trendOf(points, ({ dead }) => dead)}
        show={(by) => number(by)}
      >
        {overview && `${count(overview.published)} published`}
      </Figure>
    </section>
  )
}

function Figure(props: {
  name: string
  value: string | null
  unit?: string
  link?: string
  trend: Trend | null
  show: (by: number) => string
  isNeutral?: boolean
  children: ComponentChildren
}) {
  const { name, value, unit, link } = props
  return (
    <div class="figure">
      <h2>{link ? <a href={link}>{name}</a> : name}</h2>
      <p class="figure-value">
        {value ?? '…'}
        {unit && value && <span class="unit"> {unit}</span>}
      </p>
      <TrendLine trend={props.trend} show={props.show} isNeutral={props.isNeutral ?? false} />
      <p class="figure-note">{props.children}</p>
    </div>
  )
}

function TrendLine(props: {
  trend: Trend | null
  show: (by: number) => string
  isNeutral: boolean
}) {
  const { trend, show, isNeutral } = props
  if (!trend) return <p class="trend">&nbsp;</p>
  const { by, overMs } = trend
  const text = show(Math.abs(by))
  // What would be written as a zero is not a change.
  const isLevel = show(0) === text
  const mood = isLevel || isNeutral ? '' : by > 0 ? 'trend-worse' : 'trend-better'
  return (
    <p class={`trend ${mood}`}>
      <Icon name={isLevel ? 'level' : by > 0 ? 'up' : 'down'} />
      {isLevel ? 'steady' : `${by > 0 ? '+' : '−'}${text}`} in {duration(overMs)}
    </p>
  )
}

/** Minutes come up to two minutes late. */
function isNew({ at, stepMs }: Point): boolean {
  return at >= databaseNow() - 3 * Math.max(stepMs, 60_000)
}

function sum({ immediate, fallback }: Sample): number | null {
  return immediate === null && fallback === null ? null : (immediate ?? 0) + (fallback ?? 0)
}

function unitOf(counted: CountAnswer | undefined): string {
  return counted?.count === 1 ? 'event' : 'events'
}

function rateOf(value: number | null | undefined): string {
  return value == null ? '–' : rate(value)
}
