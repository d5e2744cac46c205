// What can be wrong with relay: 'cdc', for start(), health(), `aftercommit status` and the doctor alike. What was never set up,
// or is gone, would lose events for the connector's readers, so start() refuses it, and without start() the first save. A
// connector that is behind loses nothing.
import { OutboxError } from '../errors.ts'
import type { CdcFound } from '../store/outbox/cdc/look.ts'
import { createPublication } from '../store/outbox/cdc/script.ts'
import { qualifiedName, quoteName, type TableName } from '../store/table-name.ts'
import { formatBytes } from './doctor/bytes.ts'

export interface CdcProblem {
  readonly message: string
  readonly remedy: string
}

/** How far a connector may be behind, and how much WAL any slot may hold. */
export const MOST_SLOT_BYTES = 2 ** 30

/** The oldest server whose publications can leave out rows. */
const OLDEST_SERVER = 150_000

/** What keeps events from the connector for good. */
export function findUnprepared(found: CdcFound, table: TableName): CdcProblem[] {
  const { version, walLevel } = found
  const problems: CdcProblem[] = []
  if (version < OLDEST_SERVER) {
    const message = `relay: 'cdc' needs Postgres 15, and this is ${Math.floor(version / 10_000)}`
    problems.push({ message, remedy: 'upgrade the server' })
  }
  if (walLevel !== 'logical') {
    problems.push({
      message: `wal_level is ${walLevel}, so a connector cannot read the events`,
      remedy: 'set wal_level = logical and restart the server',
    })
  }
  return [...problems, ...judgePublication(found, table), ...judgeSlot(found)]
}

function judgePublication({ publication, names }: CdcFound, table: TableName): CdcProblem[] {
  const name = quoteName(names.publication)
  const create = createPublication(table)
  if (publication === null) {
    return [{ message: `there is no publication ${name}`, remedy: create }]
  }
  const wrong = [
    !publication.hasTable && `does not include ${qualifiedName(table).text}`,
    publication.hasTable &&
      !publication.isFiltered &&
      'includes events that the outbox sends itself',
    !publication.isInsertOnly && 'publishes more than inserts',
    !publication.isOfRoot && 'is not published through the root of a partitioned table',
  ].filter((one) => one !== false)
  if (wrong.length === 0) return []
  return [
    {
      message: `the publication ${name} ${wrong.join(', and ')}`,
      remedy: `drop publication ${name}; ${create}`,
    },
  ]
}

function judgeSlot({ slot, names }: CdcFound): CdcProblem[] {
  if (slot === null) {
    return [
      {
        message: `there is no replication slot ${names.slot}, so events that are saved now would not be sent`,
        remedy:
          'start the connector that aftercommit cdc-config prints; it creates the slot. If there was one before, send what was missed from the table first; see "a lost slot" in docs/guides/cdc.md',
      },
    ]
  }
  if (slot.walStatus !== 'lost') return []
  return [
    {
      message: `the replication slot ${names.slot} has lost WAL that the connector had not read, so events were not sent`,
      remedy:
        'create it again and send the missed events from the table; see "a lost slot" in docs/guides/cdc.md',
    },
  ]
}

/** What delays events, and may lose them. `mostBytes` is how much the connector may be behind. */
export function findBehind({ slot, names }: CdcFound, mostBytes: number): CdcProblem[] {
  if (slot === null || slot.walStatus === 'lost') return []
  const behind = `${formatBytes(slot.unreadBytes)} behind`
  const loss = describeLoss(slot)
  if (!slot.isActive) {
    return [
      {
        message: `no connector reads the replication slot ${names.slot}, which is ${behind}; events wait, and the server keeps its log for them${loss ?? ''}`,
        remedy: 'start the connector, or look at the status of its task in Kafka Connect',
      },
    ]
  }
  if (slot.unreadBytes <= mostBytes && loss === null) return []
  return [
    {
      message: `the connector on the replication slot ${names.slot} is ${behind}${loss ?? ''}`,
      remedy:
        'look at the status of its task, at Kafka, and for a transaction that writes much at once or stays open for long',
    },
  ]
}

/** Once half of what the server keeps for the slot is used up. */
function describeLoss({ heldBytes, safeBytes }: NonNullable<CdcFound['slot']>): string | null {
  if (safeBytes === null || safeBytes >= heldBytes) return null
  const left = formatBytes(Math.max(0, safeBytes))
  return `; after ${left} more of log the server gives the slot up (max_slot_wal_keep_size)`
}

/** Thrown by start(), and without it by the first save. */
export function requirePrepared(found: CdcFound, table: TableName): void {
  const problems = findUnprepared(found, table)
  if (problems.length === 0) return
  const text = problems.map(({ message, remedy }) => `${message}; ${remedy}`).join('\n')
  throw new OutboxError('CDC_NOT_READY', text)
}
