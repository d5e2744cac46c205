// Whether the current role may do what an application has to. A role that may only read is fine for looking.
import type { GrantsFound } from '../../store/outbox/doctor/grants.ts'
import { type Act, type Purpose, PURPOSES, RIGHTS, tableNameOf } from '../../store/grants.ts'
import { quoteName, type TableName } from '../../store/table-name.ts'
import type { Check, Found } from './finding.ts'

type Tables = GrantsFound['tables']

export const grantsCheck: Check = {
  name: 'grants',
  async run({ doctor, made, table }) {
    const { tables, functions } = await made(false)
    const { role, schemaUsage, tables: found, uncallable } = await doctor.grants(tables, functions)
    const to = quoteName(role)
    if (!schemaUsage) {
      return [
        {
          severity: 'error',
          message: `the role ${role} may not use the schema ${table.schema}`,
          remedy: `grant usage on schema ${quoteName(table.schema)} to ${to}`,
        },
      ]
    }
    const findings = judgeRowSecurity(role, table, found)
    // A role that may change nothing is there to look.
    const isReader = found.every(({ granted }) => granted.every((act) => act === 'select'))
    if (isReader) return [...findings, ...judgeReader(role, table, found)]
    findings.push(...judge(role, table, found))
    if (!runs(table, found)) return findings
    for (const name of uncallable) {
      findings.push({
        severity: 'error',
        message: `the role ${role} may not call the function ${name}`,
        remedy: `grant execute on function ${quoteName(table.schema)}.${quoteName(name)} to ${to}`,
      })
    }
    return findings
  },
}

/** A role that has all of one purpose has what it needs. Otherwise it is compared with a service. */
function judge(role: string, table: TableName, found: Tables): Found[] {
  const fitting = PURPOSES.filter((purpose) => lackingFor(purpose, table, found).length === 0)
  if (fitting.includes('service')) return []
  if (fitting.some((purpose) => purpose !== 'reader')) {
    return [
      {
        severity: 'info',
        message: `the role ${role} has the rights for: ${fitting.join(', ')}`,
        remedy: `for a service that does everything, run what \`aftercommit grants ${role}\` prints`,
      },
    ]
  }
  return lackingFor('service', table, found).map(({ name, acts }) => ({
    severity: 'error',
    message: `the role ${role} lacks ${acts.join(', ')} on ${name}`,
    remedy: `grant ${acts.join(', ')} on ${quoteName(table.schema)}.${quoteName(name)} to ${quoteName(role)}`,
  }))
}

function lackingFor(purpose: Purpose, table: TableName, found: Tables) {
  return (['outbox', 'pauses', 'instances'] as const).flatMap((key) => {
    const name = tableNameOf(table, key)
    const granted = found.find((one) => one.name === name)?.granted
    const needed: readonly Act[] = RIGHTS[purpose][key]
    // Another check reports a table that is missing.
    const acts = granted ? needed.filter((act) => !granted.includes(act)) : []
    return acts.length === 0 ? [] : [{ name, acts }]
  })
}

/** Background work runs outside any request, so a policy that depends on a tenant or a user hides every row from it. */
function judgeRowSecurity(role: string, { schema }: TableName, found: Tables): Found[] {
  return found.flatMap(({ name, rowSecurity }) => {
    if (!rowSecurity) return []
    const on = `${quoteName(schema)}.${quoteName(name)}`
    return {
      severity: 'warning',
      message: `row-level security applies to the role ${role} on ${name}: rows that a policy hides from it are neither sent nor cleaned up`,
      remedy: `make sure that a policy shows the role every row: create policy aftercommit on ${on} to ${quoteName(role)} using (true) with check (true); or: alter table ${on} disable row level security`,
    }
  })
}

/** Whether the role is for a process that runs an outbox: only those call the functions, and each has a row of its own. */
function runs(table: TableName, found: Tables): boolean {
  const instances = tableNameOf(table, 'instances')
  return found.some(({ name, granted }) => name === instances && granted.includes('insert'))
}

function judgeReader(role: string, { schema }: TableName, found: Tables): Found[] {
  const name = (one: { readonly name: string }) => `${quoteName(schema)}.${quoteName(one.name)}`
  const to = quoteName(role)
  const unreadable = found.filter(({ granted }) => granted.length === 0)
  if (unreadable.length > 0) {
    return [
      {
        severity: 'error',
        message: `the role ${role} may not read ${unreadable.map((one) => one.name).join(', ')}`,
        remedy: `grant select on ${unreadable.map(name).join(', ')} to ${to}`,
      },
    ]
  }
  if (found.length === 0) return []
  const all = found.map(name).join(', ')
  return [
    {
      severity: 'info',
      message: `the role ${role} may only read, which is enough to look`,
      remedy: `for retry, discard, pause, resume and purge use the role of the application, or grant insert, update, delete on ${all} to ${to}`,
    },
  ]
}
