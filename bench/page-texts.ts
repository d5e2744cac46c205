// What a reader of the page has to know of a workload or a contender before its figures say anything.
import type { ContenderName } from './contender.ts'

export const WORKLOAD_TEXTS: Record<string, string> = {
  'throughput 16':
    '16 units of work at once, each begun when the one before it has ended, of one event of 1,000 bytes each.',
  'throughput 64':
    'The same with 64 at once. The pool has 20 connections: a unit of work waits for one for most of its time.',
  latency:
    '50 units of work a second, whatever became of those before. Whoever delivers fewer than that is left out.',
  hotkey: '16 units of work at once, all for one aggregate.',
  fanout:
    '16 units of work at once, each with 100 events of 100 bytes. A dual write sends them one by one.',
  'payload 100': '16 units of work at once, an event of 100 bytes each.',
  'payload 1000': 'The same with 1,000 bytes.',
  'payload 50000': 'The same with 50,000 bytes.',
  drain:
    'Rows of 1,000 bytes that an outage left behind, sent by one instance, for at most 60 seconds; peers have as many rows as they need for 15.',
  'drain with two': 'The same by two instances at once.',
  'drain with four': '4,000 rows by four instances at once: what several of them send twice.',
}

export const HISTORY_TEXT =
  'By the defaults: a round of the fallback that finds nothing, and a drain of 50,000 rows of 100 bytes, in a table with so many published rows.'

export const OVERHEAD_TEXT =
  'One unit of work at a time, of three kinds by turns, with a pause between them: a row of the business, and one event of 1,000 bytes or none.'

interface About {
  readonly what: string
  readonly driver: string
  readonly tuned: string
}

const MARK = { driver: 'postgres.js, Drizzle', tuned: '' }
const PG = 'node-postgres'

export const CONTENDER_TEXTS: Record<ContenderName, About> = {
  aftercommit: {
    what: 'this library, in order for each aggregate',
    driver: 'postgres.js, Drizzle',
    tuned: 'claims of 1,000 from the first one on, rows deleted once they are published',
  },
  'emit-in': {
    ...MARK,
    what: 'this library in a transaction that the application begins: emitIn(), which has to notice the COMMIT by itself',
  },
  'dual-write': {
    ...MARK,
    what: 'a mark: commits, then sends and waits for the ack; a crash in between loses the event',
  },
  textbook: {
    ...MARK,
    what: 'the outbox of many articles: a row, a send and an update one by one, a poller that takes 100 rows every 7 s',
  },
  'bare-idea': {
    ...MARK,
    what: 'a mark: a row, one send and one update for all that was committed meanwhile; no leases, order, retries or fallback',
  },
  'postgres-only': { ...MARK, what: 'a mark: the same transactions, and nothing is sent' },
  'kafkajs-only': {
    what: 'a mark: the same messages from memory, in batches of 500',
    driver: '',
    tuned: '',
  },
  'pg-transactional-outbox-polling': {
    what: 'a row for each event, found by asking for it',
    driver: PG,
    tuned: '50 rows every 50 ms',
  },
  'pg-transactional-outbox-wal': {
    what: 'a row for each event, found in the write-ahead log',
    driver: PG,
    tuned: 'ten at once',
  },
  'graphile-worker': {
    what: 'a job for each event, woken by NOTIFY',
    driver: PG,
    tuned: '50 at once out of a local queue of 200, completed in batches',
  },
  'nest-native-messaging': {
    what: 'a row for each event, one worker that is woken after COMMIT; several of them send the same rows',
    driver: PG,
    tuned: 'claims of 200',
  },
  'pg-boss': {
    what: 'a job for each event; by its defaults one is taken every two seconds',
    driver: PG,
    tuned: 'batches of 1,000, one after another while they are full, woken by NOTIFY',
  },
}
