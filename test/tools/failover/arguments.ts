// What the promotions are asked for.
import { parseArgs } from 'node:util'
import { requireWhole } from '../../support/run/whole-number.ts'
import { STANDBY_KINDS, type StandbyKind } from '../../support/servers/postgres-pair.ts'

export interface FailOverArguments {
  readonly promotions: number
  readonly standby: StandbyKind
  /** Units of work that commit before each promotion, and after the last. */
  readonly units: number
  readonly seed: number
  readonly workers: number
}

export const USAGE = `npm run failover -- [--promotions 10] [--standby ${STANDBY_KINDS.join('|')}] [--units 150] [--seed 1] [--workers 4]`

export function parseFailOverArguments(args: readonly string[]): FailOverArguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      promotions: { type: 'string', default: '10' },
      standby: { type: 'string', default: 'synchronous' },
      units: { type: 'string', default: '150' },
      seed: { type: 'string', default: '1' },
      workers: { type: 'string', default: '4' },
    },
  })
  return {
    promotions: requireWhole('promotions', values.promotions, 1, 1_000),
    standby: parseStandby(values.standby),
    units: requireWhole('units', values.units, 1, 100_000),
    seed: requireWhole('seed', values.seed, 0, 2 ** 32 - 1),
    workers: requireWhole('workers', values.workers, 1, 32),
  }
}

function parseStandby(text: string): StandbyKind {
  const kind = STANDBY_KINDS.find((known) => known === text)
  if (kind) return kind
  throw new Error(`--standby must be ${STANDBY_KINDS.join(' or ')}, got '${text}'`)
}
