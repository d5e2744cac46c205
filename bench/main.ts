// npm run bench: every contender on the same Postgres and Kafka, in turns, several rounds. A whole
// run writes bench/results/latest.json and docs/benchmarks.md with its plots, a quick or partial one bench/results/partial.json.
import { mkdir, writeFile } from 'node:fs/promises'
import { closeLater, runToVerdict } from '../test/support/run/run-to-verdict.ts'
import { Arena } from './arena.ts'
import { type BenchArguments, parseBenchArguments, USAGE, WORKLOADS } from './arguments.ts'
import { writePage } from './page.ts'
import { makePlan } from './plan.ts'
import { Progress } from './progress.ts'
import { ratiosOf } from './ratios.ts'
import { noResults, type Results } from './results.ts'
import { ContenderFailed } from './run-process.ts'
import type { Step } from './steps.ts'
import { isMet, isSound, judgeTargets } from './targets.ts'
import { readVersions } from './versions.ts'

const RESULTS = new URL('./results/', import.meta.url)

async function bench(args: BenchArguments) {
  const plan = makePlan(args)
  const progress = new Progress(plan.reduce((sum, { weight }) => sum + weight, 0))
  closeLater(async () => progress.close())
  progress.begin('starting Postgres and Kafka')
  const arena = await Arena.open()
  const results = noResults()
  const versions = await readVersions(arena)
  const save = async (file: 'latest.json' | 'partial.json') => {
    const [targets, ratios] = [judgeTargets(results), ratiosOf(results)]
    const report = { quick: args.quick, versions, targets, ratios, ...results }
    await mkdir(RESULTS, { recursive: true })
    await writeFile(new URL(file, RESULTS), `${JSON.stringify(report, null, 2)}\n`)
    return report
  }
  for (const step of plan) {
    progress.begin(step.label)
    await runStep(step, arena, results)
    progress.end(step.weight)
    // Whatever ends it later, what was measured until then is there.
    await save('partial.json')
  }
  const whole = !args.quick && args.only.length === WORKLOADS.length
  const report = await save(whole ? 'latest.json' : 'partial.json')
  if (whole) await writePage(report)
  const judged = report.targets.filter(({ figure }) => figure !== null)
  const targets = judged.map((target) => ({ ...target, met: isMet(target) }))
  return { sound: isSound(results), targets, failures: report.failures }
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
