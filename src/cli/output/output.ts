// Where a command prints. Results go to stdout, as one JSON document or for people; questions, progress and errors go to
// stderr, so that a pipe gets results only.
import { createInterface } from 'node:readline/promises'
import { styleText } from 'node:util'
import { formatClockTime, formatTime } from './times.ts'
import { wrap } from './wrap.ts'

export interface Streams {
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
}

export interface OutputOptions {
  readonly json: boolean
  readonly exactTimes: boolean
}

export class Output {
  readonly json: boolean
  readonly streams: Streams
  readonly #exactTimes: boolean

  constructor(streams: Streams, { json, exactTimes }: OutputOptions) {
    this.streams = streams
    this.json = json
    this.#exactTimes = exactTimes
  }

  /** The result of a command: the value as JSON, or the text for people. */
  document(value: unknown, text: () => string): void {
    this.#print(this.json ? JSON.stringify(value, null, 2) : text())
  }

  /** One item of a result that goes on: a line of JSON, or a line for people. */
  line(value: unknown, text: () => string): void {
    this.#print(this.json ? JSON.stringify(value) : text())
  }

  /** A remark that is no result. */
  note(text: string): void {
    this.streams.stderr.write(`${text}\n`)
  }

  error(code: string, message: string): void {
    if (this.json) this.note(JSON.stringify({ error: { code, message } }))
    else {
      const { stderr } = this.streams
      const text = wrap(message, widthOf(stderr), 'error: '.length)
      this.note(`${this.#paint(stderr, 'red', 'error:')} ${text}`)
    }
  }

  style(format: Parameters<typeof styleText>[0], text: string): string {
    return this.#paint(this.streams.stdout, format, text)
  }

  /** A time as people write it, or exactly with --exact-times. */
  time(date: Date | null, nowMs: number): string {
    if (date === null) return '-'
    return this.#exactTimes ? date.toISOString() : formatTime(date, nowMs)
  }

  /** Both at once, where there is room. */
  bothTimes(date: Date | null, nowMs: number): string {
    return date === null ? '-' : `${formatTime(date, nowMs)} (${date.toISOString()})`
  }

  /** The time of day, in the time zone of this machine, or exactly with --exact-times. */
  clockTime(date: Date): string {
    return this.#exactTimes ? date.toISOString() : formatClockTime(date)
  }

  /** How many characters a line takes. */
  get width(): number {
    return widthOf(this.streams.stdout)
  }

  /** Whether a person can be asked. */
  get isInteractive(): boolean {
    return this.streams.stdin.isTTY && this.streams.stderr.isTTY
  }

  async ask(question: string): Promise<boolean> {
    const { stdin: input, stderr: output } = this.streams
    const prompt = createInterface({ input, output })
    try {
      return /^y(es)?$/i.test((await prompt.question(`${question} [y/N] `)).trim())
    } finally {
      prompt.close()
    }
  }

  #print(text: string): void {
    if (text !== '') this.streams.stdout.write(`${text}\n`)
  }

  // A terminal knows about NO_COLOR, FORCE_COLOR and TERM=dumb.
  #paint(
    stream: NodeJS.WriteStream,
    format: Parameters<typeof styleText>[0],
    text: string,
  ): string {
    return stream.isTTY && stream.hasColors() ? styleText(format, text) : text
  }
}

/** A pipe or a file takes lines of any length. */
function widthOf(stream: NodeJS.WriteStream): number {
  return (stream.isTTY && stream.columns) || Infinity
}
