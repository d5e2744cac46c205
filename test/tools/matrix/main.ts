// npm run test:matrix: the suite on every version of Postgres, Kafka and @platformatic/kafka that is supported, and behind
// PgBouncer, one cell after the other, with a table in the end. Exit code 1 if any cell failed.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { createOwnedFolder } from '../../support/servers/owned-folder.ts'
import { explainMissingPgBouncer } from '../../support/servers/pgbouncer.ts'
import { type MatrixArguments, parseMatrixArguments, USAGE } from './arguments.ts'
import { type Cell, chooseCells, environmentOf } from './cells.ts'
import { prepareNewerClient, type Workplace } from './newer-client.ts'

type Verdict = 'green' | 'RED' | 'skipped'

interface Result {
  readonly cell: string
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  readonly seconds: number
  readonly verdict: Verdict
}

interface Report {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numPendingTests: number
}

const vitest = join(
  dirname(createRequire(import.meta.url).resolve('vitest/package.json')),
  'vitest.mjs',
)
let running: ChildProcess | undefined
let interrupted = false
const say = (text: string) => console.log(`${(performance.now() / 1_000).toFixed(0)}s  ${text}`)

async function runCell(cell: Cell): Promise<Result> {
  const began = performance.now()
  const folder = await createOwnedFolder('aftercommit-matrix-')
  let workplace: Workplace | undefined
  try {
    if (cell.platformatic === '2') workplace = await prepareNewerClient()
    const report = join(folder.path, 'report.json')
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
    const program = workplace?.node ?? process.execPath
    const child = spawn(program, [vitest, 'run', ...reporters, ...cell.files], {
      cwd: workplace?.folder,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: environmentOf(cell, process.env),
    })
    running = child
    const [code] = (await once(child, 'exit')) as [number | null]
    const counts = await readReport(report)
    return {
      cell: cell.name,
      ...counts,
      seconds: Math.round((performance.now() - began) / 1_000),
      verdict: code === 0 && counts.failed === 0 && counts.passed > 0 ? 'green' : 'RED',
    }
  } finally {
    await workplace?.remove()
    await folder.remove()
  }
}

function skip(cell: Cell): Result {
  return { cell: cell.name, passed: 0, failed: 0, skipped: 0, seconds: 0, verdict: 'skipped' }
}

/** A run that did not get as far as its tests leaves no report. */
async function readReport(path: string): Promise<Pick<Result, 'passed' | 'failed' | 'skipped'>> {
  const text = await readFile(path, 'utf8').catch(() => null)
  if (text === null) return { passed: 0, failed: 0, skipped: 0 }
  const report = JSON.parse(text) as Report
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests,
    skipped: report.numPendingTests,
  }
}

function readArguments(): MatrixArguments {
  try {
    return parseMatrixArguments(process.argv.slice(2))
  } catch (error) {
    console.error(`${(error as Error).message}\n${USAGE}`)
    process.exit(2)
  }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    interrupted = true
    running?.kill(signal)
  })
}
const cells = chooseCells(readArguments())
const missing = cells.some(({ pgbouncer }) => pgbouncer) ? await explainMissingPgBouncer() : null
const results: Result[] = []
for (const [index, cell] of cells.entries()) {
  if (interrupted) break
  say(`${index + 1} of ${cells.length}: ${cell.name}`)
  const result = cell.pgbouncer && missing ? skip(cell) : await runCell(cell)
  results.push(result)
  say(`${cell.name}: ${result.verdict}`)
}
console.table(results)
const count = (verdict: Verdict) => results.filter((result) => result.verdict === verdict).length
say(`${count('green')} cells passed, ${count('RED')} failed, ${count('skipped')} skipped`)
if (count('skipped') > 0) say(`what is behind PgBouncer was skipped: ${missing}`)
process.exitCode = count('green') > 0 && count('RED') === 0 && !interrupted ? 0 : 1
