// npm run bench: every contender on the same Postgres and Kafka, in turns, several rounds. A whole run writes its results
// (bench/results/latest.json, or node-24.json on Node 24) and docs/benchmarks.md with its plots, a quick or partial one
// bench/results/partial.json.
import { closeLater, runToVerdict, say } from '../test/support/run/run-to-verdict.ts'
import { Arena } from './arena.ts'
import { type BenchArguments, parseBenchArguments, USAGE, WORKLOADS } from './arguments.ts'
import { writePage } from './page.ts'
import { makePlan } from './plan.ts'
import { Progress } from './progress.ts'
import { fileOf, makeReport, readReports, writeReport } from './reports.ts'
import { noResults, type Results } from './results.ts'
import { ContenderFailed } from './run-process.ts'
import type { Step } from './steps.ts'
import { TimeSheet } from './time-sheet.ts'
import { isMet, isSound } from './targets.ts'
import { readVersions } from './versions.ts'

const PARTIAL = 'partial.json'
/** For Postgres and Kafka to start. */
const START_SECONDS = 15

async function bench(args: BenchArguments) {
  if (args.pageOnly) return await rewritePage()
  const plan = makePlan(args)
  const planned = plan.reduce((sum, { weight }) => sum + weight, START_SECONDS)
  say(`${plan.length} steps, planned for ${Math.ceil(planned / 60)} minutes`)
  const progress = new Progress(planned)
  closeLater(async () => progress.close())
  progress.begin('starting Postgres and Kafka')
  const arena = await Arena.open()
  progress.end(START_SECONDS)
  const results = noResults()
  const versions = await readVersions(arena)
  const times = new TimeSheet()
  const save = async (file: string) => {
    const report = makeReport({ quick: args.quick, versions, spent: times.spent }, results)
    await writeReport(file, report)
    return report
  }
  for (const step of plan) {
    progress.begin(step.label)
    await times.note(step, () => runStep(step, arena, results))
    progress.end(step.weight)
    // Whatever ends it later, what was measured until then is there.
    await save(PARTIAL)
  }
  await arena.finish()
  const whole = !args.quick && args.only.length === WORKLOADS.length
  const report = await save(whole ? fileOf(process.versions.node) : PARTIAL)
  if (whole) await writePage(await readReports())
  const judged = report.targets.filter(({ figure }) => figure !== null)
  const targets = judged.map((target) => ({ ...target, met: isMet(target) }))
  return { sound: isSound(results), targets, failures: report.failures, spent: report.spent }
}

async function rewritePage() {
  await writePage(await readReports())
  return { sound: true }
}

// A contender that gives up, such as one of whose events the last never arrives, must not end the run for all.
async function runStep(step: Step, arena: Arena, results: Results): Promise<void> {
  try {
    await step.run(arena, results)
  } catch (error) {
    if (!(error instanceof ContenderFailed)) throw error
    const { contender, label: turn } = step
    results.failures.push({ contender, turn, reason: error.message })
  }
}

await runToVerdict({
  usage: USAGE,
  parse: parseBenchArguments,
  run: bench,
  isGood: ({ sound }) => sound,
})
