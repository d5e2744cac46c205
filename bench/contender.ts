// What takes part in a benchmark. Each contender does the same business in the same database and sends the same
// messages through kafkajs, or through @platformatic/kafka if its name says so; how an event gets from the one to the
// other is its own affair.
import type { Kafka } from 'kafkajs'
import type { Acks } from './acks.ts'

export interface BenchEvent {
  /** Counted up from 0 within a run: what arrived, and what did not, is told by it. */
  readonly id: string
  /** The aggregate that it belongs to, and its message key. */
  readonly key: string
  readonly payload: { readonly id: string; readonly text: string }
}

/** What every contender is given, and has to use. */
export interface Stage {
  readonly databaseUrl: string
  /** Connections for the application; a relay that has its own comes on top. */
  readonly poolSize: number
  /** Whether nobody has made the tables in this database yet. */
  readonly fresh: boolean
  readonly topic: string
  /** Acks are noted by whoever sends through this, by the header `bench-id`. */
  readonly kafka: Pick<Kafka, 'producer'>
  /** For a contender on another client, which has to note its acks as well. */
  readonly brokers: readonly string[]
  readonly acks: Acks
  /** Its best settings instead of its defaults. */
  readonly tuned: boolean
}

export interface Contender {
  /** Relays and connections, ready to go. */
  start(): Promise<void>
  /** One business transaction and its events. Calls `committed` when the transaction is. */
  unit(events: readonly BenchEvent[], committed: () => void): Promise<void>
  /** Rows as an outage leaves them: committed, due, and not sent. Called before start(). */
  leaveBehind?(events: readonly BenchEvent[]): Promise<void>
  stop(): Promise<void>
}

/** A Kafka client, as an application uses it. Acks come from all replicas. */
export interface Sender {
  connect(): Promise<void>
  /** In one call. */
  send(events: readonly BenchEvent[]): Promise<unknown>
  disconnect(): Promise<void>
}

/** Makes its tables, too, where they are not there yet. */
export type MakeContender = (stage: Stage) => Promise<Contender>

export const CONTENDERS = [
  'aftercommit',
  'aftercommit-platformatic',
  'emit-in',
  'dual-write',
  'dual-write-platformatic',
  'textbook',
  'pg-transactional-outbox-polling',
  'pg-transactional-outbox-wal',
  'graphile-worker',
  'nest-native-messaging',
  'pg-boss',
  'bare-idea',
  'kafkajs-only',
  'platformatic-only',
  'postgres-only',
] as const

export type ContenderName = (typeof CONTENDERS)[number]

/** The alternatives that somebody might install instead. */
export const PEERS = [
  'pg-transactional-outbox-polling',
  'pg-transactional-outbox-wal',
  'graphile-worker',
  'nest-native-messaging',
  'pg-boss',
] as const satisfies readonly ContenderName[]

export async function makeContender(name: ContenderName, stage: Stage): Promise<Contender> {
  const module = (await import(`./contenders/${name}.ts`)) as { make: MakeContender }
  return await module.make(stage)
}

/** As Kafka gets it from everybody. */
export function messageOf({ id, key, payload }: BenchEvent) {
  return { key, value: JSON.stringify(payload), headers: { 'bench-id': id } }
}
