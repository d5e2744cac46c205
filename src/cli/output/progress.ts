// A bar on a terminal's last line. Where there is no terminal, nothing is shown.
import { clearLine, cursorTo } from 'node:readline'
import type { Output } from './output.ts'

const WIDTH = 30

export interface Progress {
  advance(by: number): void
  end(): void
}

export function showProgress(
  { streams: { stderr } }: Output,
  what: string,
  total: number,
): Progress {
  let done = 0
  const draw = () => {
    if (!stderr.isTTY) return
    const share = total === 0 ? 1 : Math.min(1, done / total)
    const filled = Math.round(share * WIDTH)
    const bar = `${'█'.repeat(filled)}${'░'.repeat(WIDTH - filled)}`
    cursorTo(stderr, 0)
    stderr.write(`${what} ${bar} ${Math.floor(share * 100)} % (${done} of ${total})`)
    clearLine(stderr, 1)
  }
  draw()
  return {
    advance(by) {
      done += by
      draw()
    },
    end() {
      if (!stderr.isTTY) return
      cursorTo(stderr, 0)
      clearLine(stderr, 0)
    },
  }
}
