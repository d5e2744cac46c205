// A contender's process as the benchmark sees it.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { closeLater } from '../test/support/run/run-to-verdict.ts'
import type { Assignment, FromProcess, JobResult, ToProcess } from './job.ts'

const ENTRY = fileURLToPath(new URL('./contender-process.ts', import.meta.url))
const running = new Set<ChildProcess>()
/** Since it was last told something. A process that stays for several loads waits while others take their turns. */
const LIMIT_MS = 600_000

/** It said what it could not do, or ended, or had to be ended, without a result. */
export class ContenderFailed extends Error {}

export class ContenderProcess {
  readonly #child: ChildProcess
  readonly #label: string
  readonly #exited: Promise<unknown>
  readonly #done: Promise<JobResult>
  readonly #ready: Promise<unknown>
  readonly #limit: NodeJS.Timeout
  #complaints = ''
  acked = 0

  constructor(assignment: Assignment) {
    const args = ['--import', 'tsx', ENTRY, JSON.stringify(assignment)]
    this.#label = `${assignment.contender}${assignment.tuned ? ', tuned' : ''}, ${assignment.job.kind}`
    this.#child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    running.add(this.#child)
    this.#child.stderr!.on('data', (text) => {
      this.#complaints = `${this.#complaints}${String(text)}`.slice(-4_000)
    })
    // One for each message that is waited for.
    this.#child.setMaxListeners(0)
    this.#limit = setTimeout(() => this.#child.kill('SIGKILL'), LIMIT_MS)
    this.#exited = once(this.#child, 'exit').finally(() => {
      clearTimeout(this.#limit)
      running.delete(this.#child)
    })
    this.#done = this.#hear('done').then(({ result }) => result)
    this.#ready = this.#hear('ready')
    // Whoever awaits one of them sees it fail; the other must not end the run by itself.
    this.#done.catch(() => {})
    this.#ready.catch(() => {})
    this.#child.on('message', (message: FromProcess) => {
      if (message.kind === 'progress') this.acked = message.acked
    })
  }

  /** Resolves when it is warm and waits for the word. */
  get ready(): Promise<unknown> {
    return this.#ready
  }

  say(word: ToProcess): void {
    this.#limit.refresh()
    if (this.#child.connected) this.#child.send(word)
  }

  /** Says so, and waits for the next message of this kind. */
  async ask<K extends FromProcess['kind']>(word: ToProcess, kind: K) {
    if (!this.#child.connected) throw new ContenderFailed(`${this.#label}: ended while it waited`)
    const reply = this.#hear(kind)
    this.say(word)
    return await reply
  }

  /** The result, once the process has ended. */
  async result<T extends JobResult>(): Promise<T> {
    const result = await this.#done
    await this.#exited
    return result as T
  }

  async #hear<K extends FromProcess['kind']>(kind: K): Promise<Extract<FromProcess, { kind: K }>> {
    return await new Promise((resolve, reject) => {
      this.#child.on('message', (message: FromProcess) => {
        if (message.kind === kind) resolve(message as Extract<FromProcess, { kind: K }>)
        if (message.kind === 'failed') reject(new ContenderFailed(message.reason))
      })
      this.#child.on('exit', () => {
        const complaint = this.#complaints.trim().split('\n').at(-1)
        reject(new ContenderFailed(`${this.#label}: ended before it was ${kind}: ${complaint}`))
      })
    })
  }
}

closeLater(async () => {
  for (const child of running) child.kill('SIGKILL')
})
