// What whole runs found, on each major version of Node that they were run on.
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { ratiosOf } from './ratios.ts'
import type { Results, Spent } from './results.ts'
import { judgeTargets, type Target } from './targets.ts'

const RESULTS = new URL('./results/', import.meta.url)
/** The floor. The page shows all figures of this one, and of others whether the targets were met. */
const PAGE_NODE = 20

export interface Report extends Results {
  readonly quick: boolean
  readonly versions: Record<string, string>
  readonly targets: readonly Target[]
  /** What was run, for how long. */
  readonly spent: readonly Spent[]
}

export function majorOf(version: string): number {
  return Number(version.split('.')[0])
}

/** Where a whole run is kept. A run on another Node leaves what the page shows as it is. */
export function fileOf(nodeVersion: string): string {
  const major = majorOf(nodeVersion)
  return major === PAGE_NODE ? 'latest.json' : `node-${major}.json`
}

export function makeReport(run: Pick<Report, 'quick' | 'versions' | 'spent'>, results: Results) {
  const targets = judgeTargets(results, majorOf(run.versions['node']!))
  return { ...run, targets, ratios: ratiosOf(results), ...results }
}

export async function writeReport(file: string, report: Report): Promise<void> {
  await mkdir(RESULTS, { recursive: true })
  await writeFile(new URL(file, RESULTS), `${JSON.stringify(report, null, 2)}\n`)
}

/** The one of the page, and those of other versions of Node. */
export async function readReports(): Promise<[Report, ...Report[]]> {
  const others = (await readdir(RESULTS)).filter((file) => /^node-\d+\.json$/.test(file))
  const [main, ...rest] = await Promise.all(['latest.json', ...others.toSorted()].map(readReport))
  return [main!, ...rest]
}

async function readReport(file: string): Promise<Report> {
  const report = JSON.parse(await readFile(new URL(file, RESULTS), 'utf8')) as Partial<Report>
  if (report.spent) return report as Report
  throw new Error(
    `bench/results/${file} is of an earlier benchmark and does not fit the page; run the whole benchmark on that Node, then write the page with --page`,
  )
}
