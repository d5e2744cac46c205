import { expect, it } from 'vitest'
import type { CdcFound } from '../../../src/store/outbox/cdc/look.ts'
import { findBehind } from '../../../src/upkeep/cdc.ts'

const MB = 2 ** 20

function found(slot: Partial<NonNullable<CdcFound['slot']>>): CdcFound {
  return {
    names: { publication: 'events', slot: 'events' },
    version: 180_000,
    walLevel: 'logical',
    publication: null,
    slot: {
      isActive: true,
      unreadBytes: MB,
      heldBytes: MB,
      safeBytes: null,
      walStatus: 'reserved',
      ...slot,
    },
  }
}

const messages = (slot: Parameters<typeof found>[0]) =>
  findBehind(found(slot), 1_024 * MB).map(({ message }) => message)

it('warns of a slot that the server is about to give up for a transaction that stays open, though all is read', () => {
  expect(messages({ heldBytes: 900 * MB, safeBytes: 100 * MB })).toEqual([
    'the connector on the replication slot events is 1.0 MB behind; after 100 MB more of log the server gives the slot up (max_slot_wal_keep_size)',
  ])
})

it('says nothing while the server keeps less than half of what it may, or has no limit', () => {
  expect(messages({ heldBytes: 400 * MB, safeBytes: 600 * MB })).toEqual([])
  expect(messages({ heldBytes: 900 * MB })).toEqual([])
})
