// One child process of the test servers: its output kept for error messages, its end awaited, and its
// life tied to the folder it works in (see owned-folder.ts).
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import type { EndSignal, OwnedFolder } from './owned-folder.ts'

export type ProcessIdentity = { uid: number; gid: number }

export type ServerProcessOptions = {
  /** What ends the process, without regard to its data, when its owner is gone. */
  endSignal: EndSignal
  identity?: ProcessIdentity | undefined
  env?: NodeJS.ProcessEnv
}

export type ServerProcess = {
  readonly pid: number
  readonly running: boolean
  /** Resolves with the exit code, null after a signal. */
  readonly exited: Promise<number | null>
  /** The last lines the process wrote. */
  readonly output: string
  signal(name: NodeJS.Signals): void
  /** Resolves when the text is in the output; rejects with the output when the process ends first. */
  waitForOutput(text: string): Promise<void>
}

const keptCharacters = 8_000

export async function spawnServer(
  folder: OwnedFolder,
  command: string,
  args: readonly string[],
  options: ServerProcessOptions,
): Promise<ServerProcess> {
  // In a group of its own, so that Ctrl-C in a terminal reaches the owner only.
  const child = spawn(command, args, {
    cwd: folder.path,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...options.env },
    ...options.identity,
  })
  let output = ''
  const watchers = new Set<() => void>()
  const exited = new Promise<number | null>((resolve) => {
    child.once('close', (code) => {
      folder.forget()
      resolve(code)
    })
  })
  const pid = await new Promise<number>((resolve, reject) => {
    child.once('error', (cause) => reject(new Error(`${command} could not be run`, { cause })))
    if (child.pid !== undefined) {
      folder.record(child.pid, options.endSignal)
      resolve(child.pid)
    }
  })
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8')
    stream.on('data', (text: string) => {
      output += text
      for (const watch of watchers) watch()
      output = output.slice(-keptCharacters)
    })
  }

  const isRunning = () => child.exitCode === null && child.signalCode === null
  return {
    pid,
    exited,
    get running() {
      return isRunning()
    },
    get output() {
      return output
    },
    signal(name) {
      if (isRunning()) child.kill(name)
    },
    async waitForOutput(text) {
      const seen = new Promise<'seen'>((resolve) => {
        const watch = () => {
          if (output.includes(text)) resolve('seen')
        }
        watchers.add(watch)
        watch()
      })
      const first = await Promise.race([seen, exited])
      watchers.clear()
      if (first !== 'seen') throw new Error(`${command} ended before it was ready:\n${output}`)
    },
  }
}

/** Ends a process, also one that is frozen. */
export async function endProcess(
  server: ServerProcess | undefined,
  signal: NodeJS.Signals,
): Promise<void> {
  server?.signal(signal)
  server?.signal('SIGCONT')
  await server?.exited
}

/** Runs a command to its end; a failure carries what it wrote. */
export async function runToEnd(...call: Parameters<typeof spawnServer>): Promise<void> {
  const child = await spawnServer(...call)
  const code = await child.exited
  if (code !== 0) throw new Error(`${call[1]} failed (exit code ${code}):\n${child.output}`)
}

/** Kills a process and all that it has started, at once. Of its children, those that it starts in sessions of their own too. */
export async function killFamily(server: ServerProcess): Promise<void> {
  // Frozen first, so that it neither reacts to their end nor starts others.
  server.signal('SIGSTOP')
  const children = await readFile(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8')
  for (const pid of children.split(' ').filter(Boolean)) {
    // Ended in the meantime, which is as good.
    try {
      process.kill(Number(pid), 'SIGKILL')
    } catch {}
  }
  server.signal('SIGKILL')
  await server.exited
}
