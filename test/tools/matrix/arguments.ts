// Which cells of the matrix are asked for.
import { parseArgs } from 'node:util'
import {
  checkVersion,
  kafkaReleases,
  postgresReleases,
} from '../../support/servers/server-versions.ts'

const PLATFORMATIC_MAJORS = ['1', '2'] as const
export type PlatformaticMajor = (typeof PLATFORMATIC_MAJORS)[number]

export interface MatrixArguments {
  /** Only the files where the version is most likely to matter. */
  readonly short: boolean
  readonly postgres: string | null
  readonly kafka: string | null
  readonly pgbouncer: boolean
  /** The cell of this version of @platformatic/kafka alone. */
  readonly platformatic: PlatformaticMajor | null
}

export const USAGE = `npm run test:matrix -- [--short] [--postgres ${[...postgresReleases.keys()].join('|')}] [--kafka ${[...kafkaReleases.keys()].join('|')}] [--pgbouncer] [--platformatic ${PLATFORMATIC_MAJORS.join('|')}]`

export function parseMatrixArguments(args: readonly string[]): MatrixArguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      short: { type: 'boolean', default: false },
      postgres: { type: 'string' },
      kafka: { type: 'string' },
      pgbouncer: { type: 'boolean', default: false },
      platformatic: { type: 'string' },
    },
  })
  const { short, postgres, kafka, pgbouncer, platformatic } = values
  return {
    short,
    postgres:
      postgres === undefined ? null : checkVersion('--postgres', postgres, postgresReleases),
    kafka: kafka === undefined ? null : checkVersion('--kafka', kafka, kafkaReleases),
    pgbouncer,
    platformatic: platformatic === undefined ? null : parseMajor(platformatic),
  }
}

function parseMajor(text: string): PlatformaticMajor {
  const major = PLATFORMATIC_MAJORS.find((known) => known === text)
  if (major) return major
  throw new Error(`--platformatic must be one of ${PLATFORMATIC_MAJORS.join(', ')}, got '${text}'`)
}
