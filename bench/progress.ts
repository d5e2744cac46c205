// How far the run is, on stderr: a bar that is drawn over itself on a terminal, a line per step elsewhere.
const WIDTH = 24
/** For so long the plan is believed more than what was seen. */
const TRUST_SECONDS = 120

/** How long steps of `left` planned seconds will take, if `done` planned seconds took `spent`. */
export function estimateLeft(left: number, done: number, spent: number): number {
  return (left * (spent + TRUST_SECONDS)) / (done + TRUST_SECONDS)
}

export class Progress {
  readonly #total: number
  #done = 0
  #startedAt = performance.now()

  /** `total` in seconds, as planned. */
  constructor(total: number) {
    this.#total = total
  }

  begin(label: string): void {
    const share = this.#done / this.#total
    const bar = '#'.repeat(Math.round(share * WIDTH)).padEnd(WIDTH, '.')
    const line = `[${bar}] ${String(Math.floor(share * 100)).padStart(3)} %  ${this.#left()}  ${label}`
    if (process.stderr.isTTY) process.stderr.write(`\r\u001B[K${line}`)
    else process.stderr.write(`${line}\n`)
  }

  end(weight: number): void {
    this.#done += weight
  }

  close(): void {
    if (process.stderr.isTTY) process.stderr.write('\r\u001B[K')
  }

  #left(): string {
    const spent = (performance.now() - this.#startedAt) / 1_000
    const seconds = estimateLeft(this.#total - this.#done, this.#done, spent)
    return seconds < 90 ? `${Math.ceil(seconds)} s left` : `${Math.ceil(seconds / 60)} min left`
  }
}
