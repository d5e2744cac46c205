// Whether the tables, indexes and functions are those of this version, made by migrate() or by other migrations.
import { quoteName } from '../../store/table-name.ts'
import { isDenied, isLocked } from '../../store/database.ts'
import { messageOf } from '../../errors.ts'
import type { Check, DoctorParts, Found } from './finding.ts'

const OLDEST_SERVER = 140_000

/** What kind of table there is: `r`, `p` for a partitioned one, or null for none. */
export async function findTable({
  doctor,
  made,
  table,
}: DoctorParts): Promise<{ kind: string | null; findings: Found[] }> {
  const { kind } = await doctor.relations(await made(false))
  if (kind !== null) return { kind, findings: [] }
  const name = `${quoteName(table.schema)}.${quoteName(table.name)}`
  const message = `there is no table ${name}`
  const remedy = 'run aftercommit migrate, or name the right table with --schema and --table'
  return { kind, findings: [{ severity: 'error', message, remedy }] }
}

export const schemaCheck: Check = {
  name: 'schema',
  readsEvents: true,
  async run(parts, { server, isPartitioned }, skip) {
    const made = await parts.made(isPartitioned)
    const there = await parts.doctor.relations(made)
    const indexes = new Set(there.indexes.map(({ name }) => name))
    const missing = [
      ...without(made.tables, there.tables).map((name) => `the table ${name}`),
      ...without(made.functions, there.functions).map((name) => `the function ${name}`),
      ...without(made.indexes, [...indexes]).map((name) => `the index ${name}`),
    ]
    const pending = await findPending(parts, skip)
    const findings = [...serverTooOld(server.version), ...pending]
    // What an outstanding migration makes is missing because of it.
    if (!pending.some(({ severity }) => severity === 'error'))
      findings.push(...missing.map(toFound))
    for (const { name, isValid } of there.indexes) {
      if (isValid) continue
      findings.push({
        severity: 'error',
        message: `the index ${name} is not valid, so Postgres does not use it`,
        remedy: `reindex index concurrently ${quoteName(parts.table.schema)}.${quoteName(name)}`,
      })
    }
    if (findings.every(({ severity }) => severity === 'info')) {
      findings.push(...(await verify(parts, skip)))
    }
    return findings
  },
}

function without(wanted: readonly string[], found: readonly string[]): string[] {
  return wanted.filter((name) => !found.includes(name))
}

function toFound(what: string): Found {
  return {
    severity: 'error',
    message: `${what} is missing`,
    remedy:
      'create it again; aftercommit migrate --sql --all prints the statements that make everything',
  }
}

function serverTooOld(version: number): Found[] {
  if (version >= OLDEST_SERVER) return []
  const message = `Postgres ${Math.floor(version / 10_000)} is older than 14, the oldest that is supported`
  return [{ severity: 'error', message, remedy: 'upgrade the server' }]
}

async function findPending(parts: DoctorParts, skip: (reason: string) => void): Promise<Found[]> {
  const state = await parts.migrations().catch((error: unknown) => {
    if (!isDenied(error)) throw error
    skip('which migrations are applied: the role may not read the table of migrations')
    return null
  })
  if (!state) return []
  if (state.applied === null) {
    const message = 'migrate() did not make the table: it is kept in migrations of your own'
    return [{ severity: 'info', message, remedy: null }]
  }
  if (state.pending.length === 0) return []
  return [
    {
      severity: 'error',
      message: `migrations are not applied: ${state.pending.join(', ')}`,
      remedy: 'run aftercommit migrate (--sql prints what it would do)',
    },
  ]
}

/** Runs what start() runs: the columns, and a call of the function. */
async function verify({ store }: DoctorParts, skip: (reason: string) => void): Promise<Found[]> {
  try {
    await store.verify()
    return []
  } catch (error) {
    if (isLocked(error)) throw error
    if (isDenied(error)) {
      skip(`whether the table works: ${messageOf(error)}`)
      return []
    }
    const remedy = 'run aftercommit migrate, or bring your own migrations up to date'
    return [{ severity: 'error', message: messageOf(error), remedy }]
  }
}
