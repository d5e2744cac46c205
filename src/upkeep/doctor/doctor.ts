// The doctor: looks at everything around the outbox that goes wrong in practice, and names the remedy. It only reads, and
// goes as far as its role may: a check that is denied is reported as skipped.
import { messageOf } from '../../errors.ts'
import { isDenied, isLocked } from '../../store/database.ts'
import { cdcCheck } from './cdc.ts'
import { circuitsCheck } from './circuits.ts'
import { clockCheck } from './clock.ts'
import type { Check, DoctorParts, Finding, Known, SkippedCheck } from './finding.ts'
import { grantsCheck } from './grants.ts'
import { historyCheck } from './history.ts'
import { instancesCheck } from './instances.ts'
import { blockedBy } from './locks.ts'
import { partitionsCheck } from './partitions.ts'
import { findTable, schemaCheck } from './schema.ts'
import { slotsCheck, transactionsCheck } from './transactions.ts'
import { vacuumCheck } from './vacuum.ts'
import { deadLettersCheck, pausesCheck, waitingCheck } from './waiting.ts'

export interface Diagnosis {
  /** Whether nothing needs a person: there are neither errors nor warnings. */
  readonly ok: boolean
  readonly checked: readonly string[]
  /** Errors first, then warnings. */
  readonly findings: readonly Finding[]
  readonly skipped: readonly SkippedCheck[]
}

/** What needs no table. */
const OF_THE_SERVER: readonly Check[] = [clockCheck, transactionsCheck, slotsCheck]

const OF_THE_TABLE: readonly Check[] = [
  grantsCheck,
  schemaCheck,
  partitionsCheck,
  instancesCheck,
  cdcCheck,
  circuitsCheck,
  waitingCheck,
  pausesCheck,
  deadLettersCheck,
  historyCheck,
  vacuumCheck,
]

const LOCKED = 'a table is locked; see the finding of locks'

/** Throws if the database cannot be asked at all. */
export async function diagnose(parts: DoctorParts): Promise<Diagnosis> {
  const server = await parts.doctor.server()
  const table = await findTable(parts)
  const known: Known = { server, isPartitioned: table.kind === 'p' }
  const findings: Finding[] = table.findings.map((found) => ({ check: 'schema', ...found }))
  const skipped: SkippedCheck[] = []
  const checked: string[] = []
  let isTableLocked = false
  for (const check of [...OF_THE_TABLE, ...OF_THE_SERVER]) {
    const skip = (reason: string) => skipped.push({ check: check.name, reason })
    if (table.kind === null && OF_THE_TABLE.includes(check)) {
      // The schema is what was found wrong.
      if (check === schemaCheck) checked.push(check.name)
      else skip('there is no table')
      continue
    }
    if (isTableLocked && check.readsEvents) {
      skip(LOCKED)
      continue
    }
    try {
      const found = await check.run(parts, known, skip)
      findings.push(...found.map((one) => ({ check: check.name, ...one })))
      checked.push(check.name)
    } catch (error) {
      if (isLocked(error)) {
        skip(LOCKED)
        // The other checks of the same table would wait for nothing too.
        if (check.readsEvents) isTableLocked = true
        const isReported = findings.some((finding) => finding.check === 'locks')
        const locks = isReported ? [] : blockedBy(await parts.doctor.blockers())
        findings.push(...locks.map((one) => ({ check: 'locks', ...one })))
      } else if (isDenied(error)) skip(`the role ${server.role} may not: ${messageOf(error)}`)
      else findings.push({ check: check.name, ...couldNot(error) })
    }
  }
  const ok = findings.every(({ severity }) => severity === 'info')
  return { ok, checked, findings: worstFirst(findings), skipped }
}

function worstFirst(findings: readonly Finding[]): Finding[] {
  const worst = (['error', 'warning', 'info'] as const).map((severity) =>
    findings.filter((finding) => finding.severity === severity),
  )
  return worst.flat()
}

function couldNot(error: unknown) {
  return {
    severity: 'error',
    message: `the check failed: ${messageOf(error)}`,
    remedy: 'fix what the message names, and run doctor again',
  } as const
}
