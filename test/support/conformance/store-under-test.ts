// What the conformance suite of stores needs of a database, and what its tests say over and over. There is no SQL
// here or in the suite: a store for another database runs the same tests.
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { prepareEvent } from '../../../src/event/prepare.ts'
import type { NewEvent, OutboxEvent, TransactionSettings } from '../../../src/index.ts'
import type {
  FailureRecord,
  Lease,
  LeaseRef,
  Store,
  StoreRules,
} from '../../../src/store/outbox/outbox-store.ts'
import { type ClaimNow, newClaimer } from '../claimer.ts'
import { lenientRules, newEvent } from '../doubles/sample-events.ts'
import { waitUntil } from '../timing/wait-until.ts'

export type StoreUnderTest<TTx> = {
  /** A store on the database of this suite. */
  store(rules: StoreRules): Store<TTx>
  /** Runs the work in a transaction, which rolls back if it fails. */
  transaction<T>(work: (tx: TTx) => Promise<T>, settings?: TransactionSettings): Promise<T>
  /** Takes everything out of the table of that name, and out of those beside it. */
  empty(table: string): Promise<void>
  close(): Promise<void>
}

export type StoreSuite<TTx> = {
  /** Whether several transactions can be open at the same time: some promises are about nothing else. */
  readonly sessions: 'many' | 'one'
  /** Whether the table has partitions. @default false */
  readonly partitioned?: boolean
  readonly open: () => Promise<StoreUnderTest<TTx>>
}

const RULES: StoreRules = {
  table: { schema: 'public', name: 'outbox' },
  deadLettersHold: false,
  savesForCdc: false,
  lockKeys: false,
  keepPublished: true,
  deadLetterTopic: null,
  statementTimeoutMs: 30_000,
}

/** Longer than any test. */
export const LONG = 3_600_000

export const leased = (ms = LONG): Lease => ({ token: randomUUID(), workerId: 'test', ms })

export type TestedStore<TTx> = ReturnType<typeof useStore<TTx>>

export function useStore<TTx>({ open, partitioned = false }: StoreSuite<TTx>) {
  let tested: StoreUnderTest<TTx>
  beforeAll(async () => {
    tested = await open()
    await tested.store(RULES).migrate({ partitioned })
  })
  afterEach(() => tested.empty(RULES.table.name))
  afterAll(() => tested.close())

  const store = (rules: Partial<StoreRules> = {}) => tested.store({ ...RULES, ...rules })
  const claimer = newClaimer(store)
  const claim = async (lease = leased(), request: Omit<ClaimNow, 'lease'> = {}) =>
    await claimer({ ...request, lease })
  const save = async (
    events: Partial<NewEvent>[],
    lease = leased(0),
    rules: Partial<StoreRules> = {},
  ) => {
    const prepared = prepare(events)
    const saved = await tested.transaction((tx) => store(rules).save(tx, prepared, lease))
    return saved.map(({ event, follows }) => ({ ...event, follows }))
  }
  return {
    store,
    transaction: <T>(work: (tx: TTx) => Promise<T>, settings?: TransactionSettings) =>
      tested.transaction(work, settings),
    /** Saves events in a transaction of their own; without a lease, for whoever claims them. */
    save,
    claim,
    /** Saves one event under a lease and records that it died. */
    bury: async (event: Partial<NewEvent>) => {
      const lease = leased()
      const [saved] = await save([event], lease)
      await store().recordFailed([died({ id: saved!.id, token: lease.token })])
      return saved!
    },
    /** Claims until there is something, for what becomes due when a lease or a rest is over. */
    claimDue: (lease = leased()) =>
      waitUntil(
        async () => {
          const events = await claim(lease)
          return events.length > 0 && events
        },
        { message: 'there is something to claim' },
      ),
  }
}

export function prepare(events: Partial<NewEvent>[]) {
  return events.map((event) => prepareEvent(newEvent(event), lenientRules))
}

export const refs = (events: readonly { id: string }[], { token }: Lease): LeaseRef[] =>
  events.map(({ id }) => ({ id, token }))

export const failed = (ref: LeaseRef): FailureRecord => ({
  ...ref,
  status: 'failed',
  counts: true,
  delayMs: 0,
  error: 'it failed',
  copyId: null,
  copyLane: null,
})

export const givenBack = (ref: LeaseRef): FailureRecord => ({
  ...failed(ref),
  status: null,
  counts: false,
  error: null,
})

export const died = (ref: LeaseRef): FailureRecord => ({ ...failed(ref), status: 'dead_letter' })

export const payloadsOf = (events: readonly OutboxEvent[]) =>
  events.map(({ payload }) => JSON.parse(payload) as unknown)
