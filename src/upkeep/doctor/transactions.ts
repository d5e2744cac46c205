// What keeps Postgres from cleaning up: transactions that stay open, and replication slots that no consumer reads.
import { formatAge } from '../age.ts'
import { formatBytes } from './bytes.ts'
import type { OldTransaction } from '../../store/outbox/doctor/old-transactions.ts'
import type { SlotFound } from '../../store/outbox/doctor/slots.ts'
import type { Check, Found } from './finding.ts'

export const transactionsCheck: Check = {
  name: 'transactions',
  async run({ doctor, limits, showQueries }, { server }, skip) {
    if (!server.seesOthers) {
      skip(
        `transactions of other roles: grant pg_read_all_stats to the role ${server.role} to see them`,
      )
    }
    const found = await doctor.oldTransactions(limits.oldTransactionMs, showQueries)
    return found.map(toFound)
  },
}

function toFound(transaction: OldTransaction): Found {
  const remedy = endTransaction(transaction)
  return {
    severity: 'warning',
    message: `a transaction has been ${describeTransaction(transaction)}; vacuum cannot remove rows that were updated or deleted after it began`,
    remedy:
      transaction.gid === null
        ? `${remedy}; idle_in_transaction_session_timeout ends forgotten ones`
        : remedy,
  }
}

/** Such as `open for 3 min by pid 42 (role app, idle in transaction)`. */
export function describeTransaction(transaction: OldTransaction): string {
  const { pid, gid, ageMs, role, application, state, query } = transaction
  const about = [
    role && `role ${role}`,
    application && `application ${application}`,
    state,
    query && `statement: ${query}`,
  ]
  const who = gid === null ? `by pid ${pid}` : `as the prepared transaction '${gid}'`
  return `open for ${formatAge(ageMs)} ${who} (${about.filter(Boolean).join(', ')})`
}

export function endTransaction({ pid, gid }: OldTransaction): string {
  return gid === null
    ? `end it in its application, or with select pg_terminate_backend(${pid})`
    : `commit prepared or rollback prepared '${gid.replaceAll("'", "''")}'`
}

export const slotsCheck: Check = {
  name: 'replication slots',
  async run({ doctor, limits }) {
    const [slots, { publication, names }] = await Promise.all([doctor.slots(), doctor.cdc()])
    // The check of cdc looks at the slot of our own connector.
    const others = slots.filter(({ name }) => publication === null || name !== names.slot)
    return others.flatMap((slot) => judgeSlot(slot, limits.slotBytes))
  },
}

function judgeSlot(slot: SlotFound, mostBytes: number): Found[] {
  const { name, isActive, heldBytes, holdsRows, walStatus } = slot
  if (isActive && heldBytes <= mostBytes) return []
  const rows = holdsRows ? ' and keeps dead rows from being removed' : ''
  const state = isActive ? '' : ', which no consumer reads,'
  const lost = walStatus === 'lost' ? '; it has lost WAL that it needs' : ''
  return [
    {
      severity: 'warning',
      message: `the replication slot ${name}${state} holds ${formatBytes(heldBytes)} of WAL${rows}${lost}`,
      remedy: `start its consumer, or, if it is gone for good, select pg_drop_replication_slot('${name.replaceAll("'", "''")}')`,
    },
  ]
}
