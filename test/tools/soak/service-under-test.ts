// The service as its watcher sees it: a process of its own that is asked one thing at a time.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { medianOf } from './median.ts'
import type { Command, Look, Measurement, ServiceArguments } from './service.ts'

const FILE = fileURLToPath(new URL('./service.ts', import.meta.url))

const SETTLING_MS = 3_000
const LOOKS = 11
const LOOK_EVERY_MS = 150
const END_LIMIT_MS = 15_000

export class ServiceUnderTest {
  readonly #child: ChildProcess
  readonly #exited: Promise<unknown>

  private constructor(child: ChildProcess) {
    this.#child = child
    this.#exited = once(child, 'exit')
  }

  static async start(args: ServiceArguments): Promise<ServiceUnderTest> {
    const flags = ['--expose-gc', '--import', 'tsx', FILE, JSON.stringify(args)]
    // In a group of its own: Ctrl-C in a terminal reaches the watcher only, which then ends this.
    const child = spawn(process.execPath, flags, {
      detached: true,
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    const service = new ServiceUnderTest(child)
    await service.#answer()
    return service
  }

  async write(): Promise<void> {
    await this.#ask('write')
  }

  async measure(): Promise<Measurement> {
    return (await this.#ask('measure')) as Measurement
  }

  /**
   * What the service holds when it has nothing to do, as most of a number of looks show it: a look that meets a
   * loop at work sees a timer less or a request more, but what leaked is there each time.
   */
  async restAndLook(): Promise<Look> {
    await this.#ask('rest')
    await delay(SETTLING_MS)
    const looks: Look[] = []
    for (let n = 0; n < LOOKS; n += 1) {
      looks.push((await this.#ask('look')) as Look)
      await delay(LOOK_EVERY_MS)
    }
    return {
      handles: medianOf(looks.map(({ handles }) => handles)),
      listeners: medianOf(looks.map(({ listeners }) => listeners)),
    }
  }

  /** Answers whether the process came to its end by itself once everything in it was stopped. */
  async end(): Promise<boolean> {
    await this.#ask('end')
    const ended = await Promise.race([this.#exited, delay(END_LIMIT_MS, 'still there')])
    return ended !== 'still there' && this.#child.exitCode === 0
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    this.#child.kill('SIGKILL')
    await this.#exited
  }

  async #ask(command: Command): Promise<unknown> {
    const answer = this.#answer()
    this.#child.send(command)
    return await answer
  }

  async #answer(): Promise<unknown> {
    const gone = this.#exited.then(() => {
      throw new Error('the service ended before it was told to')
    })
    const heard = once(this.#child, 'message') as Promise<[{ answer?: unknown }]>
    const [{ answer }] = await Promise.race([heard, gone])
    return answer
  }
}
