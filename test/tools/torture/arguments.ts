// What the torture is asked to do.
import { parseArgs } from 'node:util'
import { KAFKA_CLIENT_NAMES, type KafkaClientName } from '../../support/kafka-clients.ts'
import { requireWhole } from '../../support/run/whole-number.ts'

/** What can go wrong, by the name that it is asked for with. */
export const FAULT_KINDS = ['kill', 'freeze', 'postgres', 'kafka', 'network', 'pause'] as const
export type FaultKind = (typeof FAULT_KINDS)[number]

export interface TortureArguments {
  readonly seconds: number
  readonly seed: number
  readonly workers: number
  readonly faults: readonly FaultKind[]
  /** A Kafka of one broker, or a cluster of three. */
  readonly brokers: number
  /** The Kafka client of the workers. */
  readonly client: KafkaClientName
  /** Whether the table of the outbox has partitions. */
  readonly partitioned: boolean
}

export const USAGE = `npm run torture -- [--seconds 60] [--seed 1] [--workers 4] [--faults all|none|${FAULT_KINDS.join(',')}] [--brokers 1|3] [--client ${KAFKA_CLIENT_NAMES.join('|')}] [--partitioned]`

export function parseTortureArguments(args: readonly string[]): TortureArguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string', default: '1' },
      workers: { type: 'string', default: '4' },
      faults: { type: 'string', default: 'all' },
      brokers: { type: 'string', default: '1' },
      client: { type: 'string', default: 'kafkajs' },
      partitioned: { type: 'boolean', default: false },
    },
  })
  return {
    seconds: requireWhole('seconds', values.seconds, 1, 86_400),
    seed: requireWhole('seed', values.seed, 0, 2 ** 32 - 1),
    workers: requireWhole('workers', values.workers, 1, 32),
    faults: parseFaults(values.faults),
    brokers: parseBrokers(values.brokers),
    client: parseClient(values.client),
    partitioned: values.partitioned,
  }
}

function parseFaults(text: string): readonly FaultKind[] {
  if (text === 'all') return FAULT_KINDS
  if (text === 'none') return []
  return text.split(',').map((name) => {
    const kind = FAULT_KINDS.find((known) => known === name)
    if (kind) return kind
    throw new Error(`--faults must be all, none or some of ${FAULT_KINDS.join()}, got '${name}'`)
  })
}

function parseClient(text: string): KafkaClientName {
  const client = KAFKA_CLIENT_NAMES.find((known) => known === text)
  if (client) return client
  throw new Error(`--client must be ${KAFKA_CLIENT_NAMES.join(' or ')}, got '${text}'`)
}

function parseBrokers(text: string): number {
  if (text === '1' || text === '3') return Number(text)
  throw new Error(`--brokers must be 1 or 3, got '${text}'`)
}
