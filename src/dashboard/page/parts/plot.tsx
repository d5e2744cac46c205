// One plot on a canvas. Its legend has a fixed place for each value, of the moment under the pointer or the newest one; all plots
// share the pointer's moment.
import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import type { Sample } from '../../api.ts'
import { databaseNow } from '../data/clock.ts'
import { clockTime } from '../data/format.ts'
import { columnsOf, type Point } from '../data/samples.ts'
import { useIsDark } from '../data/theme.ts'

export interface Line {
  readonly name: string
  /** A custom property of the style sheet, such as `--line-1`. */
  readonly color: string
  /** Told apart without colour. */
  readonly dash?: number[]
  readonly isFilled?: boolean
  readonly read: (sample: Sample) => number | null
}

export interface PlotProps {
  readonly title: string
  readonly lines: readonly Line[]
  readonly points: readonly Point[]
  readonly spanMs: () => number
  /** What stands where there is nothing to draw. */
  readonly empty: string
  /** The smallest upper end of the axis, so that nothing is not drawn as much. */
  readonly atLeast: number
  readonly format: (value: number) => string
  readonly axis: (value: number) => string
  /** The steps of the axis; those of decimal numbers if not given. */
  readonly steps?: number[]
}

const HEIGHT = 150
const SYNC = uPlot.sync('samples')

export function Plot(props: PlotProps) {
  const { title, lines, points, spanMs, format } = props
  const host = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const [index, setIndex] = useState<number | null>(null)
  const isDark = useIsDark()
  const reads = lines.map(({ read }) => read)
  const data = columnsOf(points, reads)
  const latest = useRef(data)
  latest.current = data
  const span = useRef(spanMs)
  span.current = spanMs
  const range = (): [number, number] => {
    const now = databaseNow()
    return [(now - span.current()) / 1000, now / 1000]
  }

  useEffect(() => {
    const element = host.current!
    const made = new uPlot(optionsOf(props, element, range, setIndex), latest.current, element)
    plot.current = made
    SYNC.sub(made)
    const resized = new ResizeObserver(() =>
      made.setSize({ width: element.clientWidth, height: HEIGHT }),
    )
    resized.observe(element)
    return () => {
      resized.disconnect()
      SYNC.unsub(made)
      made.destroy()
    }
  }, [isDark])
  useEffect(() => plot.current?.setData(latest.current), [points, spanMs])

  const isEmpty = data.slice(1).every((values) => values.every((value) => value === null))
  const at = index ?? newestOf(data)
  const values = lines.map((_, line) => data[line + 1]?.[at])
  const texts = values.map((value) => (value == null ? '–' : format(value)))
  const summary = lines.map(({ name }, line) => `${name} ${texts[line]}`).join(', ')
  return (
    <figure class="plot">
      <figcaption>
        <h3>{title}</h3>
        <dl class="legend">
          {lines.map((line, number) => (
            <div key={line.name} data-line={line.color.slice(2)}>
              <dt>{line.name}</dt>
              <dd>{texts[number]}</dd>
            </div>
          ))}
        </dl>
      </figcaption>
      <div ref={host} class="canvas" role="img" aria-label={`${title}: ${summary}`} />
      {isEmpty && <p class="plot-empty">{props.empty}</p>}
    </figure>
  )
}

/** The newest moment of which something is known. */
function newestOf([times, ...columns]: ReturnType<typeof columnsOf>): number {
  return times.findLastIndex((_, n) => columns.some((values) => values[n] != null))
}

function optionsOf(
  { lines, axis, atLeast, steps }: PlotProps,
  host: HTMLElement,
  range: () => [number, number],
  onIndex: (index: number | null) => void,
): uPlot.Options {
  const color = (name: string) => colorOf(name, host)
  const axisLook = {
    stroke: color('--text-soft'),
    font: `11px ${getComputedStyle(host).fontFamily}`,
    grid: { stroke: color('--border'), width: 1 },
    ticks: { show: false },
  }
  return {
    width: host.clientWidth,
    height: HEIGHT,
    padding: [6, 8, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: SYNC.key }, drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { range },
      y: { range: (_, __, max) => [0, Math.max(atLeast, (max ?? 0) * 1.1)] },
    },
    axes: [
      {
        ...axisLook,
        grid: { show: false },
        size: 24,
        gap: 2,
        space: 70,
        incrs: [1, 2, 5, 10, 20, 30, 60].map((minutes) => minutes * 60),
        values: (_, splits) => splits.map((at) => clockTime(at * 1000)),
      },
      {
        ...axisLook,
        size: 52,
        gap: 4,
        space: 26,
        ...(steps && { incrs: steps }),
        values: (_, splits) => splits.map((value) => (value === 0 ? '0' : axis(value))),
      },
    ],
    series: [
      {},
      ...lines.map((line) => ({
        stroke: color(line.color),
        width: 1.5,
        ...(line.dash && { dash: line.dash }),
        ...(line.isFilled && { fill: color(`${line.color}-fill`) }),
        points: { show: false },
      })),
    ],
    hooks: { setCursor: [({ cursor }) => onIndex(cursor.idx ?? null)] },
  }
}

/** A canvas knows no custom properties, and theirs are not resolved until an element uses them. */
function colorOf(name: string, host: HTMLElement): string {
  host.style.color = `var(${name})`
  const { color } = getComputedStyle(host)
  host.style.color = ''
  return color
}
