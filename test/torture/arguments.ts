// What the torture is asked to do.
import { parseArgs } from 'node:util'
import { requireWhole } from '../support/whole-number.ts'

export interface TortureArguments {
  readonly seconds: number
  readonly seed: number
  readonly workers: number
  readonly faults: 'all' | 'none'
}

export const USAGE =
  'npm run torture -- [--seconds 60] [--seed 1] [--workers 4] [--faults all|none]'

export function parseTortureArguments(args: readonly string[]): TortureArguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string', default: '1' },
      workers: { type: 'string', default: '4' },
      faults: { type: 'string', default: 'all' },
    },
  })
  const { faults } = values
  if (faults !== 'all' && faults !== 'none') {
    throw new Error(`--faults must be all or none, got '${faults}'`)
  }
  return {
    seconds: requireWhole('seconds', values.seconds, 1, 86_400),
    seed: requireWhole('seed', values.seed, 0, 2 ** 32 - 1),
    workers: requireWhole('workers', values.workers, 1, 32),
    faults,
  }
}
