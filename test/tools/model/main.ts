// npm run model: every world that a few processes and events can get into, with as many faults as asked for. The
// test suite does the same with fewer; this is for those who have the time. The last line is one JSON object.
import { parseArgs } from 'node:util'
import { runToVerdict, say } from '../../support/run/run-to-verdict.ts'
import { requireWhole } from '../../support/run/whole-number.ts'
import { explore } from './explore.ts'
import {
  describeSetting,
  scheduledSettingsWith,
  settingsWith,
  unlockedSettingsWith,
} from './settings.ts'

const PROGRESS_MS = 5_000

function parseFaults(args: readonly string[]): number {
  const options = { faults: { type: 'string', default: '2' } } as const
  const { values } = parseArgs({ args: [...args], options })
  return requireWhole('faults', values.faults, 0, 9)
}

async function exploreAll(faults: number) {
  const total = { faults, settings: 0, worlds: 0, moves: 0, counterexamples: 0 }
  const processes = faults > 1 ? 1 : 2
  const settings = [
    ...scheduledSettingsWith(faults, processes),
    ...unlockedSettingsWith(faults, processes),
    ...settingsWith(faults),
  ]
  for (const setting of settings) {
    const name = describeSetting(setting)
    let told = performance.now()
    const { worlds, moves, counterexample } = explore(setting, (explored, known) => {
      if (performance.now() - told < PROGRESS_MS) return
      told = performance.now()
      say(`${name}: ${explored} worlds explored, ${known - explored} more known of`)
    })
    say(`${name}: ${worlds} worlds, ${moves} moves, ${counterexample?.property ?? 'all well'}`)
    for (const move of counterexample?.moves ?? []) console.error(`      ${move}`)
    total.settings += 1
    total.worlds += worlds
    total.moves += moves
    if (counterexample) total.counterexamples += 1
  }
  return total
}

await runToVerdict({
  usage: 'npm run model -- [--faults 2]',
  parse: parseFaults,
  run: exploreAll,
  isGood: ({ counterexamples }) => counterexamples === 0,
})
