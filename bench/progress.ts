// How far the run is, on stderr: a bar that is drawn over itself on a terminal, a line per step elsewhere.
const WIDTH = 24

export class Progress {
  readonly #total: number
  #done = 0
  #startedAt = performance.now()

  /** `total` in whatever unit the steps are weighed in; the time left is what the steps so far took. */
  constructor(total: number) {
    this.#total = total
  }

  begin(label: string): void {
    const share = this.#done / this.#total
    const bar = '#'.repeat(Math.round(share * WIDTH)).padEnd(WIDTH, '.')
    const line = `[${bar}] ${String(Math.floor(share * 100)).padStart(3)} %  ${this.#left(share)}  ${label}`
    if (process.stderr.isTTY) process.stderr.write(`\r\u001B[K${line}`)
    else process.stderr.write(`${line}\n`)
  }

  end(weight: number): void {
    this.#done += weight
  }

  close(): void {
    if (process.stderr.isTTY) process.stderr.write('\r\u001B[K')
  }

  #left(share: number): string {
    if (share === 0) return 'time left unknown'
    const seconds = ((performance.now() - this.#startedAt) / 1_000) * (1 / share - 1)
    return seconds < 90 ? `${Math.ceil(seconds)} s left` : `${Math.ceil(seconds / 60)} min left`
  }
}
