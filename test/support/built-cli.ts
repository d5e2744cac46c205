// The CLI as it is published: built once for the state of the source that it is about, and run as a process of its own.
import { execFile, spawn } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { access, cp, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { buildPage } from './run/built-page.ts'
import { waitUntil } from './timing/wait-until.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const builds = join(root, '.cache/cli/')

export type CliRun = { code: number | null; stdout: string; stderr: string }

export type CliSurroundings = {
  /** The variable DATABASE_URL. */
  readonly url?: string
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string
  /** The built package. @default the one of this source */
  readonly folder?: string
}

let building: Promise<string> | null = null

/** The folder of the built package: dist/, drizzle/ and package.json. */
export function buildPackage(): Promise<string> {
  return (building ??= build())
}

// Another worker may build the same; the first one to be done wins.
async function build(): Promise<string> {
  const folder = join(builds, await hashSource())
  if (await exists(folder)) return folder
  const draft = join(builds, `draft-${randomUUID()}`)
  await mkdir(draft, { recursive: true })
  const tsc = join(root, 'node_modules/.bin/tsc')
  const outDir = join(draft, 'dist')
  const args = ['-p', join(root, 'tsconfig.build.json'), '--outDir', outDir]
  await promisify(execFile)(tsc, args).catch(({ stdout }: { stdout: string }) => {
    throw new Error(`the source does not compile: ${stdout}`)
  })
  await buildPage(join(outDir, 'dashboard/page'))
  await cp(join(root, 'drizzle'), join(draft, 'drizzle'), { recursive: true })
  await cp(join(root, 'package.json'), join(draft, 'package.json'))
  await rename(draft, folder).catch(() => rm(draft, { recursive: true }))
  return folder
}

async function hashSource(): Promise<string> {
  const hash = createHash('sha256')
  for (const part of ['src', 'drizzle']) {
    const names = await readdir(join(root, part), { recursive: true })
    for (const name of names.toSorted()) {
      if (/\.(tsx?|css|html|sql)$/.test(name))
        hash.update(name).update(await readFile(join(root, part, name)))
    }
  }
  return hash
    .update(await readFile(join(root, 'package.json')))
    .digest('hex')
    .slice(0, 16)
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

export type RunningCli = {
  /** Resolves when stdout contains the text. */
  printed(text: string): Promise<void>
  readonly stdout: string
  signal(name: NodeJS.Signals): void
  readonly ended: Promise<CliRun>
}

/** Starts `aftercommit` with these arguments, without a terminal. */
export async function startCli(
  args: readonly string[],
  { url, env = {}, cwd = builds, folder }: CliSurroundings = {},
): Promise<RunningCli> {
  const main = join(folder ?? (await buildPackage()), 'dist/cli/main.js')
  const { DATABASE_URL: _, NODE_OPTIONS: __, ...inherited } = process.env
  const child = spawn(process.execPath, [main, ...args], {
    cwd,
    env: { ...inherited, ...(url !== undefined && { DATABASE_URL: url }), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const run: CliRun = { code: null, stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => void (run.stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => void (run.stderr += chunk.toString()))
  const ended = once(child, 'close').then(([code]) => ({ ...run, code: code as number | null }))
  return {
    get stdout() {
      return run.stdout
    },
    async printed(text) {
      const message = () => `'${text}' in ${run.stdout} ${run.stderr}`
      await waitUntil(() => run.stdout.includes(text), { message })
    },
    signal: (name) => void child.kill(name),
    ended,
  }
}

/** To its end. */
export async function runCli(
  args: readonly string[],
  surroundings: CliSurroundings = {},
): Promise<CliRun> {
  return await (await startCli(args, surroundings)).ended
}

/** What it prints with --json. Fails if it says that it failed. */
export async function readCli<T>(
  args: readonly string[],
  surroundings: CliSurroundings,
  expectedCode = 0,
): Promise<T> {
  const { code, stdout, stderr } = await runCli([...args, '--json'], surroundings)
  if (code !== expectedCode) throw new Error(`ended with ${code}: ${stderr} ${stdout}`)
  return JSON.parse(stdout) as T
}
