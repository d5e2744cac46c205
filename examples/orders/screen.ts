// The terminal: progress of single steps, lines that stay, and a block below them that is redrawn in
// place. Where nobody looks at a terminal (a pipe, CI) the block becomes one line per second.
import { performance } from 'node:perf_hooks'

export interface View {
  readonly block: readonly string[]
  readonly line: string
}

export interface Screen {
  /** Shows what is being waited for and how long it took. */
  step<T>(label: string, work: () => Promise<T>): Promise<T>
  /** A line that stays, above the block if there is one. */
  say(text: string): void
  /** Draws what the function answers, again and again, until `freeze()`. */
  beginView(render: () => View): void
  /** Ends all that moves; the last state stays on the screen. */
  freeze(): void
}

const out = process.stdout
const inPlace = out.isTTY && process.env['TERM'] !== 'dumb'
// Node's own answer: it looks at NO_COLOR and at what the terminal can do.
const colored = out.isTTY && out.hasColors(16)
const REDRAW_MS = inPlace ? 200 : 1_000

const HIDE_CURSOR = '\x1b[?25l'
const SHOW_CURSOR = '\x1b[?25h'
// A line that is too long for the window is cut by the terminal; wrapped, it would break the block.
const NO_WRAP = '\x1b[?7l'
const WRAP = '\x1b[?7h'
const ERASE_LINE = '\r\x1b[K'
const ERASE_BELOW = '\x1b[J'

const COLORS = { red: 31, green: 32, yellow: 33, bold: 1, dim: 2 }

export function paint(color: keyof typeof COLORS, text: string): string {
  return colored ? `\x1b[${COLORS[color]}m${text}\x1b[0m` : text
}

export function openScreen(): Screen {
  hideTimerWarnings()
  let render: (() => View) | null = null
  let timer: NodeJS.Timeout | undefined
  let ticking: NodeJS.Timeout | undefined
  let drawn = 0

  // However the process ends: the cursor comes back.
  if (inPlace) {
    out.write(HIDE_CURSOR)
    process.once('exit', () => out.write(WRAP + SHOW_CURSOR))
  }

  function draw(): void {
    if (!render) return
    const { block, line } = render()
    if (!inPlace) {
      out.write(`${line}\n`)
      return
    }
    const lines = block.map((text) => `${text}\x1b[K\n`).join('')
    out.write(NO_WRAP + backToTop() + lines + ERASE_BELOW + WRAP)
    drawn = block.length
  }

  function backToTop(): string {
    return drawn > 0 ? `\x1b[${drawn}F` : ''
  }

  function say(text: string): void {
    out.write(`${backToTop()}${drawn > 0 ? ERASE_BELOW : ''}${text}\n`)
    drawn = 0
    if (inPlace) draw()
  }

  async function step<T>(label: string, work: () => Promise<T>): Promise<T> {
    const startedAt = performance.now()
    const text = () => `  ${label} ... ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`
    if (inPlace) ticking = setInterval(() => out.write(ERASE_LINE + text()), 100)
    const finish = (suffix: string) => {
      clearInterval(ticking)
      out.write(`${inPlace ? ERASE_LINE : ''}${text()}${suffix}\n`)
    }
    try {
      const result = await work()
      finish('')
      return result
    } catch (error) {
      finish(', failed')
      throw error
    }
  }

  return {
    step,
    say,
    beginView(next) {
      render = next
      draw()
      timer = setInterval(draw, REDRAW_MS)
    },
    freeze() {
      clearInterval(ticking)
      clearInterval(timer)
      draw()
      render = null
      drawn = 0
    },
  }
}

/** kafkajs sets timers for moments that have passed, which newer versions of Node remark upon. */
function hideTimerWarnings(): void {
  const printers = process.listeners('warning')
  process.removeAllListeners('warning')
  process.on('warning', (warning) => {
    if (warning.name === 'TimeoutNegativeWarning') return
    for (const print of printers) print(warning)
  })
}
