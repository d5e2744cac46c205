// Aligned columns without borders, for any script that a terminal can show.
import { Table } from 'console-table-printer'
import { wrap } from './wrap.ts'

export type Cells = Readonly<Record<string, string | number>>

const NO_LINE = { left: '', mid: '', right: '', other: '' }
const BORDERLESS = {
  headerTop: NO_LINE,
  headerBottom: NO_LINE,
  tableBottom: NO_LINE,
  rowSeparator: NO_LINE,
  vertical: '',
}

interface Layout {
  /** Of the terminal. @default without end */
  readonly width?: number
  /** Lines below each row. */
  readonly below?: readonly (readonly string[])[]
}

const INDENT = 4

/**
 * The columns are those of the first row, in its order. Numbers are aligned on the right. Columns that do not fit into the
 * width go below their row, by name.
 */
export function formatTable(rows: readonly Cells[], layout: Layout = {}): string {
  const { width = Infinity, below = [] } = layout
  const names = Object.keys(rows[0] ?? {})
  const fitting = countFitting(rows, names, width)
  const [head, ...lines] = render(rows, names.slice(0, fitting))
  const blocks = lines.map((line, n) => {
    const rest = names.slice(fitting).filter((name) => !EMPTY.includes(rows[n]![name]!))
    const pairs = rest.map((name) => `${name}: ${rows[n]![name]}`)
    const further = [...pack(pairs, width - INDENT), ...(below[n] ?? [])]
    return [line, ...further.map((text) => `${' '.repeat(INDENT)}${wrap(text, width, INDENT)}`)]
  })
  return [head, ...blocks.flat()].map((line) => line!.trimEnd()).join('\n')
}

/** As many pairs in a line as it takes. */
function pack(pairs: readonly string[], room: number): string[] {
  const lines: string[] = []
  for (const pair of pairs) {
    const longer = lines.length > 0 ? `${lines.at(-1)} · ${pair}` : pair
    if (lines.length > 0 && longer.length <= room) lines[lines.length - 1] = longer
    else lines.push(pair)
  }
  return lines
}

const EMPTY: readonly (string | number)[] = ['', '-']

/** The first columns that fit, and always one. */
function countFitting(rows: readonly Cells[], names: readonly string[], width: number): number {
  let total = 0
  const tooMany = names.findIndex((name) => {
    total += render(rows, [name])[0]!.length + 1
    // The space after the last column is not printed.
    return total - 2 > width
  })
  return tooMany === -1 ? names.length : Math.max(1, tooMany)
}

/** The lines, the head first, each with all its spaces at the end. */
function render(rows: readonly Cells[], names: readonly string[]): string[] {
  const columns = names.map((name) => ({
    name,
    title: name.toUpperCase(),
    alignment: typeof rows[0]![name] === 'number' ? ('right' as const) : ('left' as const),
  }))
  const table = new Table({ shouldDisableColors: true, style: BORDERLESS, columns })
  for (const row of rows) table.addRow(Object.fromEntries(names.map((name) => [name, row[name]])))
  const lines = table.render().split('\n')
  return lines.filter((line) => line.trim() !== '').map((line) => line.slice(1))
}

/** Names and values, one pair per line. */
export function formatPairs(
  pairs: Readonly<Record<string, string | number>>,
  width = Infinity,
): string {
  const indent = Math.max(...Object.keys(pairs).map((name) => name.length)) + 2
  return Object.entries(pairs)
    .map(([name, value]) => `${name.padEnd(indent)}${wrap(String(value), width, indent)}`)
    .join('\n')
}

// Control characters: those of a terminal could rewrite what it shows.
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\s\u0000-\u001f\u007f-\u009f]+/g

/** Text that an application has written, as one harmless line. */
export function printable(text: string): string {
  return text.replaceAll(CONTROL, ' ').trim()
}

/** One line of at most this many characters. */
export function shorten(text: string, most: number): string {
  const line = printable(text)
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`
}
