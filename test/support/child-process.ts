// Runs a TypeScript file of test/support/processes in a process of its own, to its end.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export type ProcessEnd = { code: number | null; signal: string | null; output: string }

export async function runProcess(name: string, args: readonly string[]): Promise<ProcessEnd> {
  const file = fileURLToPath(new URL(`./processes/${name}.ts`, import.meta.url))
  const child = spawn(process.execPath, ['--import', 'tsx', file, ...args])
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  }
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  return { code, signal, output }
}
