// Horizontal bars as SVG, readable on light and dark pages alike.
export interface Bar {
  readonly label: string
  readonly value: number
  readonly ours: boolean
}

const ROW = 26
const LABEL_WIDTH = 270
const BAR_WIDTH = 380
const VALUE_WIDTH = 110
const HEAD = 34

export function plotBars(title: string, unit: string, bars: readonly Bar[]): string {
  const most = Math.max(...bars.map(({ value }) => value))
  const width = LABEL_WIDTH + BAR_WIDTH + VALUE_WIDTH
  const height = HEAD + bars.length * ROW + 10
  const rows = bars.map(({ label, value, ours }, n) => {
    const y = HEAD + n * ROW
    const length = Math.max(1, (value / most) * BAR_WIDTH)
    const fill = ours ? '#2f81f7' : '#8b949e'
    return [
      `<text x="${LABEL_WIDTH - 8}" y="${y + 15}" text-anchor="end">${escape(label)}</text>`,
      `<rect x="${LABEL_WIDTH}" y="${y + 3}" width="${length.toFixed(1)}" height="16" rx="2" fill="${fill}"/>`,
      `<text x="${(LABEL_WIDTH + length + 6).toFixed(1)}" y="${y + 15}">${round(value)} ${escape(unit)}</text>`,
    ].join('\n')
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escape(title)}">
<style>text{font:13px system-ui,sans-serif;fill:#57606a}.title{font-weight:600}@media(prefers-color-scheme:dark){text{fill:#adbac7}}</style>
<text class="title" x="${LABEL_WIDTH}" y="18">${escape(title)}</text>
${rows.join('\n')}
</svg>
`
}

/** Three figures that mean something, never more. */
export function round(value: number): string {
  if (value >= 100) return String(Math.round(value))
  return String(Number(value.toPrecision(3)))
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
