// npm run model: every world that two processes and a few events can get into, with as many faults as asked
// for. The test suite does the same with fewer; this is for those who have the time. The last line is one JSON
// object.
import { parseArgs } from 'node:util'
import { explore } from './explore.ts'
import { describeSetting, settingsWith } from './settings.ts'

const USAGE = 'npm run model -- [--faults 2]'
const PROGRESS_MS = 5_000

function readFaults(): number {
  try {
    const { values } = parseArgs({ options: { faults: { type: 'string', default: '2' } } })
    if (/^[0-9]$/.test(values.faults)) return Number(values.faults)
    throw new Error(`--faults must be a whole number from 0 to 9, got '${values.faults}'`)
  } catch (error) {
    console.error(`${(error as Error).message}\n${USAGE}`)
    process.exit(2)
  }
}

const faults = readFaults()
const total = { faults, settings: 0, worlds: 0, moves: 0, counterexamples: 0 }
for (const setting of settingsWith(faults)) {
  const name = describeSetting(setting)
  let told = performance.now()
  const { worlds, moves, counterexample } = explore(setting, (explored, known) => {
    if (performance.now() - told < PROGRESS_MS) return
    told = performance.now()
    console.error(`${name}: ${explored} of ${known} worlds, and counting`)
  })
  console.error(
    `${name}: ${worlds} worlds, ${moves} moves, ${counterexample?.property ?? 'all well'}`,
  )
  for (const move of counterexample?.moves ?? []) console.error(`  ${move}`)
  total.settings += 1
  total.worlds += worlds
  total.moves += moves
  if (counterexample) total.counterexamples += 1
}
console.log(JSON.stringify(total))
process.exitCode = total.counterexamples > 0 ? 1 : 0
