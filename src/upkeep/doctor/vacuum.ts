// Whether the table is kept clean: autovacuum is on, and neither dead rows nor empty space outgrow what is alive.
import { formatBytes } from './bytes.ts'
import type { TableCondition } from '../../store/outbox/doctor/vacuum.ts'
import type { OldTransaction } from '../../store/outbox/doctor/old-transactions.ts'
import { quoteName } from '../../store/table-name.ts'
import type { Check, Found } from './finding.ts'
import { describeTransaction, endTransaction } from './transactions.ts'

/** Below this, dead rows and empty space are no trouble. */
const FEW_DEAD = 50_000
const SMALL_BYTES = 2 ** 26

/** A row takes no more than this in the table itself: what is larger goes elsewhere (TOAST). */
const LARGEST_ROW_BYTES = 2_200

/** A row has one entry in the primary key, and while it is unfinished a few more. */
const INDEXED_ROW_BYTES = 400

export const vacuumCheck: Check = {
  name: 'vacuum',
  readsEvents: true,
  async run({ doctor, table, showQueries }) {
    const { isOn, tables } = await doctor.vacuum()
    // However young it is: at a high rate, dead rows pile up within seconds.
    const [oldest] = tables.some(hasManyDead) ? await doctor.oldTransactions(0, showQueries) : []
    const findings: Found[] = tables.flatMap((one) => {
      const runs = isOn && !one.isSwitchedOff
      return judge(one, { schema: table.schema, runs, oldest })
    })
    if (isOn) return findings
    const message = 'autovacuum is off on this server, so Postgres never removes dead rows'
    const remedy = 'alter system set autovacuum = on, then select pg_reload_conf()'
    return [{ severity: 'error', message, remedy }, ...findings]
  },
}

function hasManyDead({ live, dead }: TableCondition): boolean {
  return dead > FEW_DEAD && dead > live / 2
}

interface Around {
  readonly schema: string
  /** Whether autovacuum comes to the table. */
  readonly runs: boolean
  readonly oldest: OldTransaction | undefined
}

function judge(condition: TableCondition, { schema, runs, oldest }: Around): Found[] {
  const { name, live, dead, isSwitchedOff } = condition
  const own = `${quoteName(schema)}.${quoteName(name)}`
  const findings: Found[] = []
  if (isSwitchedOff) {
    findings.push({
      severity: 'error',
      message: `autovacuum is switched off for ${name}`,
      remedy: `alter table ${own} reset (autovacuum_enabled)`,
    })
  }
  if (hasManyDead(condition)) {
    const vacuum = `vacuum (analyze) ${own}`
    const cause = oldest
      ? `vacuum may not remove them because of the oldest transaction, ${describeTransaction(oldest)}: ${endTransaction(oldest)}; or because of a replication slot, which doctor lists too`
      : 'autovacuum looks once a minute by default, so wait if many events were just deleted; no open transaction was seen that would keep it from removing them; look for replication slots, which doctor names too'
    const share = formatBytes((condition.bytes * dead) / (live + dead))
    findings.push({
      severity: 'warning',
      message: `${name} has about ${dead} dead rows and ${live} live ones, about ${share} of its ${formatBytes(condition.bytes)}`,
      remedy:
        runs || oldest
          ? `${cause}; then ${vacuum}`
          : `${vacuum} now; autovacuum is off, so it does not run by itself`,
    })
  }
  return [...findings, ...judgeSpace(condition, own)]
}

// Lower bounds: what is above them cannot be rows.
function judgeSpace({ name, live, dead, heapBytes, indexBytes }: TableCondition, own: string) {
  const rows = live + dead
  // Postgres has not counted yet.
  if (rows === 0) return []
  const findings: Found[] = []
  const emptyHeap = heapBytes - rows * LARGEST_ROW_BYTES
  const emptyIndexes = indexBytes - rows * INDEXED_ROW_BYTES
  if (emptyHeap > SMALL_BYTES) {
    findings.push({
      severity: 'warning',
      message: `at least ${formatBytes(emptyHeap)} of ${name} are empty space, which new events reuse, but which Postgres does not return to the disk`,
      remedy: `vacuum full ${own} at a quiet hour, because it locks the table; partitions return space by themselves`,
    })
  }
  if (emptyIndexes > SMALL_BYTES) {
    findings.push({
      severity: 'warning',
      message: `at least ${formatBytes(emptyIndexes)} of the indexes of ${name} are empty space`,
      remedy: `reindex table concurrently ${own}`,
    })
  }
  return findings
}
