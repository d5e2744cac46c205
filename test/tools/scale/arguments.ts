// What `npm run scale` measures, and for how long.
import { parseArgs } from 'node:util'
import { requireWhole } from '../../support/run/whole-number.ts'

const WORK = ['business', 'outbox', 'cdc', 'idle'] as const
export type Work = (typeof WORK)[number]

export interface ScaleArguments {
  readonly work: Work
  /** A run for each of these numbers of processes. */
  readonly processes: readonly number[]
  /** How many outboxes each process opens, each with a client of its own. */
  readonly outboxes: number
  /** Units of work a second, of all processes together. */
  readonly rate: number
  readonly seconds: number
  /** Characters of the payload. */
  readonly payload: number
}

export const USAGE =
  'npm run scale -- [--work business|outbox|cdc|idle] [--processes 1,2,4] [--outboxes 1] [--rate 300] [--seconds 20] [--payload 1000]'

export function parseScaleArguments(args: readonly string[]): ScaleArguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      work: { type: 'string', default: 'outbox' },
      processes: { type: 'string', default: '1,2,4' },
      outboxes: { type: 'string', default: '1' },
      rate: { type: 'string', default: '300' },
      seconds: { type: 'string', default: '20' },
      payload: { type: 'string', default: '1000' },
    },
  })
  const work = WORK.find((one) => one === values.work)
  if (!work) throw new Error(`--work must be one of ${WORK.join(', ')}, got '${values.work}'`)
  return {
    work,
    processes: values.processes.split(',').map((text) => requireWhole('processes', text, 1, 16)),
    outboxes: requireWhole('outboxes', values.outboxes, 1, 100),
    rate: requireWhole('rate', values.rate, 1, 10_000),
    seconds: requireWhole('seconds', values.seconds, 1, 600),
    payload: requireWhole('payload', values.payload, 1, 500_000),
  }
}
