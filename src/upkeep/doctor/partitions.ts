// Whether a partitioned table has its days: those to come are made, and the default partition is empty.
import { isDenied } from '../../store/database.ts'
import type { Check, DoctorParts, Found } from './finding.ts'

/** Rows of the default partition are counted no further. */
const COUNTED = 1_000

export const partitionsCheck: Check = {
  name: 'partitions',
  readsEvents: true,
  async run(parts, { isPartitioned }, skip) {
    if (!isPartitioned) return []
    const found = await parts.store.partitions.find(0)
    const findings: Found[] = []
    if (found && found.missing.length > 0) {
      findings.push({
        severity: found.missing.length > 3 ? 'error' : 'warning',
        message: `there is no partition for ${found.missing.join(', ')}; events of such a day go into the default partition`,
        remedy:
          'let the owner of the table run cleanup in an instance, or aftercommit purge --older-than with your retention every day',
      })
    }
    return [...findings, ...(await lookAtDefault(parts, skip))]
  },
}

async function lookAtDefault(
  { doctor, table }: DoctorParts,
  skip: (reason: string) => void,
): Promise<Found[]> {
  const name = `${table.name}_default`
  const found = await doctor.defaultPartition(COUNTED).catch((error: unknown) => {
    if (!isDenied(error)) throw error
    skip(`what is in ${name}: the role may not read it`)
    return null
  })
  if (!found || found.rows === 0) return []
  const count = found.rows < COUNTED ? `${found.rows}` : `at least ${COUNTED}`
  return [
    {
      severity: 'warning',
      message: `the default partition ${name} has rows (${count}), because a day had no partition when they were saved`,
      remedy: `nothing is lost, and retention deletes them row by row; make sure that cleanup runs, and see "Partitions" in docs/guides/migrations.md if ${name} has grown beyond 32 MB`,
    },
  ]
}
