// Runs a TypeScript file of test/support/processes in a process of its own.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export type ProcessEnd = { code: number | null; signal: string | null; output: string }

export type RunningProcess = {
  /** Called with all lines that it has printed so far. */
  onLines(listener: (lines: readonly string[]) => void): void
  /** As if the machine were suspended, until it is killed. */
  freeze(): void
  /** kill -9. */
  kill(): void
  readonly ended: Promise<ProcessEnd>
}

export function startProcess(name: string, args: readonly string[]): RunningProcess {
  const file = fileURLToPath(new URL(`../processes/${name}.ts`, import.meta.url))
  const child = spawn(process.execPath, ['--import', 'tsx', file, ...args])
  let output = ''
  let heard: ((lines: readonly string[]) => void) | null = null
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      heard?.(output.split('\n').slice(0, -1))
    })
  }
  return {
    onLines(listener) {
      heard = listener
    },
    freeze() {
      child.kill('SIGSTOP')
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
