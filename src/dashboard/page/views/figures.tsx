// The five figures to know by heart, each with its unit and where it is heading. Every figure has its place from the start.
import type { ComponentChildren } from 'preact'
import type { Overview, Sample } from '../../api.ts'
import { count, duration, number, rate } from '../data/format.ts'
import { linkTo } from '../data/route.ts'
import { type Trend, trendOf } from '../data/samples.ts'
import { Icon } from '../parts/icon.tsx'

interface Props {
  readonly overview: Overview | null
  readonly samples: readonly Sample[]
}

export function Figures({ overview, samples }: Props) {
  const last = samples.at(-1)
  const latency = samples.findLast((sample) => sample.latency !== null)?.latency
  const oldest = overview && (overview.oldestMs === null ? 'none' : duration(overview.oldestMs))
  return (
    <section class="figures" aria-label="Key figures">
      <Figure
        name="Backlog"
        value={overview && count(overview.pending)}
        unit="events"
        link={linkTo('events', 'status=pending,failed&order=oldest')}
        trend={trendOf(samples, ({ pending }) => pending)}
        show={(by) => number(by)}
      >
        {overview &&
          `${number(overview.due)} due, ${number(overview.retrying)} resting, ${number(overview.held)} held`}
      </Figure>
      <Figure
        name="Oldest waits"
        value={oldest}
        trend={trendOf(samples, ({ oldestMs }) => oldestMs)}
        show={duration}
      >
        since it was saved
      </Figure>
      <Figure
        name="Throughput"
        value={last ? rateOf(sum(last)) : overview && '–'}
        unit="events/s"
        trend={trendOf(samples, sum)}
        show={rate}
        isNeutral
      >
        {`${rateOf(last?.immediate)} immediate, ${rateOf(last?.fallback)} fallback`}
      </Figure>
      <Figure
        name="Latency p95"
        value={latency ? duration(latency.p95Ms) : overview && '–'}
        trend={trendOf(samples, (sample) => sample.latency?.p95Ms ?? null)}
        show={duration}
      >
        {latency ? `p50 ${duration(latency.p50Ms)}, COMMIT to ack` : 'COMMIT to ack'}
      </Figure>
      <Figure
        name="Dead letters"
        value={overview && count(overview.dead)}
        unit="events"
        link={linkTo('failures')}
        trend={trendOf(samples, ({ dead }) => dead)}
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

function sum({ immediate, fallback }: Sample): number | null {
  return immediate === null && fallback === null ? null : (immediate ?? 0) + (fallback ?? 0)
}

function rateOf(value: number | null | undefined): string {
  return value == null ? '–' : rate(value)
}
