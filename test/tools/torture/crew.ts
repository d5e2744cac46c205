// The workers as their supervisor sees them: one that is gone, for whatever reason, is replaced.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Random } from './random.ts'
import type { WorkerArguments, WorkerReport } from './worker.ts'

const WORKER = fileURLToPath(new URL('./worker.ts', import.meta.url))

type Connect = Pick<WorkerArguments, 'databaseUrl' | 'brokers' | 'client' | 'sendNotes'>

interface Member {
  child: ChildProcess
  readonly driver: WorkerArguments['driver']
  report: WorkerReport
}

const NOTHING: WorkerReport = { committed: 0, failed: 0, stalledMs: 0 }

function together(some: WorkerReport, others: WorkerReport): WorkerReport {
  return {
    committed: some.committed + others.committed,
    failed: some.failed + others.failed,
    stalledMs: Math.max(some.stalledMs, others.stalledMs),
  }
}

export class Crew {
  readonly #connect: Connect
  readonly #random: Random
  readonly #members: Member[] = []
  #writing = true
  #over = false
  /** Ended without having been killed: a driver that gave up, or the liveness check. */
  crashes = 0
  #past = NOTHING

  constructor(size: number, connect: Connect, random: Random) {
    this.#connect = connect
    this.#random = random
    for (let n = 0; n < size; n += 1) {
      const driver = n % 2 ? 'node-postgres' : 'postgres-js'
      this.#members.push({ driver, report: NOTHING, child: this.#spawn(driver) })
      this.#look(n)
    }
  }

  /** By the workers' own account; the journal knows better. */
  get report(): WorkerReport {
    return [this.#past, ...this.#members.map(({ report }) => report)].reduce(together)
  }

  get size(): number {
    return this.#members.length
  }

  kill(n: number): void {
    this.#members[n]!.child.kill('SIGKILL')
  }

  freeze(n: number): { readonly pid: number; readonly thaw: () => void } {
    const { child } = this.#members[n]!
    child.kill('SIGSTOP')
    return { pid: child.pid!, thaw: () => child.kill('SIGCONT') }
  }

  /** No unit of work begins any more; the outboxes go on. */
  stopWriting(): void {
    this.#writing = false
    // One that is dying does not hear it; the one that takes its place is told at its start.
    for (const { child } of this.#members) if (child.connected) child.send('stop writing', () => {})
  }

  async stop(): Promise<void> {
    this.#over = true
    await Promise.all(
      this.#members.map(async ({ child }) => {
        if (child.exitCode !== null || child.signalCode !== null) return
        const ended = once(child, 'exit')
        child.kill('SIGTERM')
        const timer = setTimeout(() => child.kill('SIGKILL'), 20_000)
        await ended
        clearTimeout(timer)
      }),
    )
  }

  #spawn(driver: Member['driver']): ChildProcess {
    const seed = this.#random.between(0, 2 ** 32 - 1)
    const args: WorkerArguments = { ...this.#connect, driver, seed, writes: this.#writing }
    return spawn(process.execPath, ['--import', 'tsx', WORKER, JSON.stringify(args)], {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
  }

  #look(n: number): void {
    const member = this.#members[n]!
    member.child.on('message', (report) => {
      member.report = report as WorkerReport
    })
    member.child.on('exit', (_, signal) => {
      this.#past = together(this.#past, member.report)
      member.report = NOTHING
      if (this.#over) return
      if (signal !== 'SIGKILL') this.crashes += 1
      member.child = this.#spawn(member.driver)
      this.#look(n)
    })
  }
}
