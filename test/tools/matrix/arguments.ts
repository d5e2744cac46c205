// Which cells of the matrix are asked for.
import { parseArgs } from 'node:util'
import {
  checkVersion,
  kafkaReleases,
  postgresReleases,
} from '../../support/servers/server-versions.ts'

export interface MatrixArguments {
  /** Only the files where the version is most likely to matter. */
  readonly short: boolean
  readonly postgres: string | null
  readonly kafka: string | null
  readonly pgbouncer: boolean
}

export const USAGE = `npm run test:matrix -- [--short] [--postgres ${[...postgresReleases.keys()].join('|')}] [--kafka ${[...kafkaReleases.keys()].join('|')}] [--pgbouncer]`

export function parseMatrixArguments(args: readonly string[]): MatrixArguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      short: { type: 'boolean', default: false },
      postgres: { type: 'string' },
      kafka: { type: 'string' },
      pgbouncer: { type: 'boolean', default: false },
    },
  })
  const { short, postgres, kafka, pgbouncer } = values
  return {
    short,
    postgres:
      postgres === undefined ? null : checkVersion('--postgres', postgres, postgresReleases),
    kafka: kafka === undefined ? null : checkVersion('--kafka', kafka, kafkaReleases),
    pgbouncer,
  }
}
