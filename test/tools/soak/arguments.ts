// What the soak is asked to do.
import { parseArgs } from 'node:util'
import { requireWhole } from '../../support/run/whole-number.ts'

export interface SoakArguments {
  /** Of load, warm-up included. */
  readonly seconds: number
  /** Units of work per second. */
  readonly rate: number
}

export const USAGE = 'npm run soak -- [--seconds 600] [--rate 60]'

export function parseSoakArguments(args: readonly string[]): SoakArguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string', default: '600' },
      rate: { type: 'string', default: '60' },
    },
  })
  return {
    seconds: requireWhole('seconds', values.seconds, 20, 7_200),
    rate: requireWhole('rate', values.rate, 1, 1_000),
  }
}
