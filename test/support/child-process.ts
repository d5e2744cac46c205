// Runs a TypeScript file of test/support/processes in a process of its own.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export type ProcessEnd = { code: number | null; signal: string | null; output: string }

export type RunningProcess = {
  /** Called with the number of lines it has printed so far. */
  onLines(listener: (count: number) => void): void
  /** kill -9. */
  kill(): void
  readonly ended: Promise<ProcessEnd>
}

export function startProcess(name: string, args: readonly string[]): RunningProcess {
  const file = fileURLToPath(new URL(`./processes/${name}.ts`, import.meta.url))
  const child = spawn(process.execPath, ['--import', 'tsx', file, ...args])
  let output = ''
  let lines = 0
  let heard: ((count: number) => void) | null = null
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      const text = chunk.toString()
      output += text
      lines += text.split('\n').length - 1
      heard?.(lines)
    })
  }
  return {
    onLines(listener) {
      heard = listener
    },
    kill() {
      child.kill('SIGKILL')
    },
    ended: once(child, 'close').then(([code, signal]) => {
      return { code: code as number | null, signal: signal as string | null, output }
    }),
  }
}

/** To its end. */
export async function runProcess(name: string, args: readonly string[]): Promise<ProcessEnd> {
  return await startProcess(name, args).ended
}
