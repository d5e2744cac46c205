// What the doctor finds, as `aftercommit doctor` does. Statements of other sessions may hold data, so it shows none.
import { diagnose } from '../upkeep/doctor/doctor.ts'
import type { Finding as DoctorFinding } from '../upkeep/doctor/finding.ts'
import { doctorParts } from '../upkeep/doctor/parts.ts'
import { OLD_MS } from '../upkeep/late.ts'
import type { DoctorAnswer, Finding } from './api.ts'
import { PURGE_HERE, REMEDIES, toSentence } from './remedies.ts'
import { toTime } from './shown.ts'
import { type DashboardSource, databaseTime } from './source.ts'

export async function examine(source: DashboardSource): Promise<DoctorAnswer> {
  const settings = { oldTransactionMs: OLD_MS, showQueries: false }
  const { checked, skipped, findings } = await diagnose(doctorParts(source, settings))
  return {
    now: toTime(await databaseTime(source)),
    checked,
    skipped,
    findings: findings.map(toShown),
  }
}

function toShown(finding: DoctorFinding): Finding {
  const { check, kind, severity, message, remedy } = finding
  const shown = { severity, kind: kind ?? check, what: toSentence(message), remedy, link: null }
  if (kind === undefined) return shown
  if (kind === 'history') return { ...shown, ...PURGE_HERE }
  if (kind === 'lost-instance') {
    return { ...shown, remedy: remedy && toSentence(remedy), link: { to: 'instances', query: '' } }
  }
  return { ...shown, ...REMEDIES[kind] }
}
