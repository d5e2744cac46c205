// What a reader of the page has to know about a workload or a contender before its figures mean anything.
import type { ContenderName } from './contender.ts'

export function introText(contenders: string, versions: string): string {
  return `# Benchmarks

This page compares the library with other ways to bring events from Postgres to Kafka. \`npm run bench\` generates it, and
\`bench/results/latest.json\` holds every figure, and our ratio to each other contender. All contenders take turns on one machine, with one Postgres (fsync on) and one Kafka (one broker, acks from
all replicas). Each contender has its own process, database and topic, and only one of them has work to do at a time.

A process is measured once it is warm: after 6,000 units of work, or 15 seconds. It then does all loads that its contender
takes part in, and waits while others take their turns. Contenders that decide a target at 64 begin again with a new process
after three of their five rounds. Each drain has its own process. A figure is the median of its rounds. Contenders whose ratio is
a target have five rounds at 64, and three at 16, for latency and in a drain. Of the peers these are graphile-worker (at 64)
and pg-boss (in a drain). All others have one round. Only ratios within a run mean something, because another machine has other numbers; the CPU times hold for this one.

When a process has ended, the benchmark compares its topic with the committed events; if a drain was stopped before its end,
with the acknowledged ones. "Lost" counts the events that are missing, "twice" those that came again. Nothing is measured
meanwhile.

The machine is noisy. "From, to" shows how far apart the rounds were: for a target, our worst round against their best, and
our best against their worst. A target between these two is "unclear", because another run might give the opposite verdict.
Latency, history and a unit of work have no such range, so do not trust a narrow verdict on them.
[Internals](internals/speed.md#where-the-rest-of-the-time-goes) shows where the time goes.

"Latency" is the time from COMMIT to ack. "Unit" is the time that the caller of a unit of work waits. Only a dual write
lets its caller wait for the ack. In a workload without a pace, a contender that sends more slowly than it commits builds up a
backlog: its latency only shows how long the turn was. Counts include all rounds. The workloads from hotkey to payload have
only one peer, because the run would take too long otherwise.

Contenders send through kafkajs. Those with \`platformatic\` in their name send through @platformatic/kafka: \`aftercommit\` with
its own publisher for that client, \`dual-write\` with the client's \`producer.send()\`.

${contenders}

\`aftercommit\` runs twice where it matters: with its defaults, which keep a published event for seven days, and with
\`retention: 0\`, which deletes an event when it is published. Nothing else differs. A tuned peer has
the best settings that we found. A mark is a yardstick, not an alternative. A peer is a library from npm. "The best peer" is the
fastest one of the table below, whichever that is in this run, even if it falls behind all the time.

graphile-worker, @nest-native/messaging and pg-boss officially need Node 22. They ran on the version below, even if it is older.

${versions}.`
}

export function nodesText(versions: readonly string[]): string {
  return `The benchmark ran on Node ${versions.join(' and ')}, and each version has its own table of targets: some bars are higher
from Node 24 on. All other figures on this page are those of Node ${versions[0]}; \`bench/results\` holds the rest. In a clone, this
runs all of it on Node 24:

\`\`\`sh
npx --yes --package node@24 -- npm run bench
\`\`\``
}

export const WORKLOAD_TEXTS: Record<string, string> = {
  'throughput 16':
    '16 units of work run at once. Each has one event of 1,000 bytes, and the next begins when it ends.',
  'throughput 64':
    '64 units of work run at once. The pool has 20 connections, so a unit of work mostly waits for one of them.',
  'throughput by default':
    'The same with the defaults of the peers. Their processes are warm after 2,000 units of work or 5 seconds, and are measured for 3 seconds.',
  latency:
    '50 units of work begin each second, whether or not the earlier ones have ended. A contender that delivers fewer is left out.',
  hotkey: '16 units of work run at once, all for one aggregate.',
  fanout:
    '16 units of work run at once, each with 100 events of 100 bytes. A dual write sends them one by one.',
  'payload 100': '16 units of work run at once, each with one event of 100 bytes.',
  'payload 50000': 'The same with 50,000 bytes.',
  drain:
    'One instance sends the rows of 1,000 bytes that an outage left behind, for at most 30 seconds. Slower peers get as many rows as they need for 8 seconds. The first 20,000 rows are the warm-up. Postgres CPU is the CPU time of all backends of the database, from start to end, divided by the events; autovacuum is not in it.',
  'drain with two': 'Two instances send the same rows.',
  'drain with four': 'Four instances send 4,000 rows. The last column shows what they send twice.',
}

export const CLAIMS_TEXT =
  'The fallback claims 100 events of 1,000 bytes, each in its own lane. Its publisher returns at once, and the fallback records the outcome. Other rows, also of 1,000 bytes, are in the way. Each claim alternates with one in an empty table, so that both run under the same conditions. The ratio compares the two medians. The first claim of a process is shown apart, because it may have to read these rows once.'

export const HISTORY_TEXT =
  'The table holds published rows, and the settings are the defaults. The benchmark times a round of the fallback that finds nothing, then drains 30,000 rows of 100 bytes.'

export const OVERHEAD_TEXT =
  'Units of work run one at a time, with a pause in between, and three kinds take turns. Each inserts a business row. One kind has no event, the others have one of 1,000 bytes.'

export const COST_TEXT =
  "BEGIN and COMMIT are not counted. The statements include the business's own; `postgres-only` has no others. CPU and memory are those of the contender's process, without Postgres and Kafka."

export const SPENT_TEXT =
  'The time that the turns of each workload took, including the time to start and warm up processes and to fill tables. The first load of a process includes its warm-up.'

interface About {
  readonly what: string
  readonly driver: string
  readonly tuned: string
}

const MARK = { driver: 'postgres.js, Drizzle', tuned: '' }
const PG = 'node-postgres'

export const CONTENDER_TEXTS: Record<ContenderName, About> = {
  aftercommit: {
    what: 'this library; it keeps the order of each aggregate',
    driver: 'postgres.js, Drizzle',
    tuned: '`retention: 0`: deletes an event when it is published',
  },
  'aftercommit-platformatic': {
    ...MARK,
    what: 'this library, on @platformatic/kafka',
  },
  'emit-in': {
    ...MARK,
    what: 'this library with emitIn(): the application begins the transaction, and the library notices the COMMIT by itself',
  },
  'dual-write': {
    ...MARK,
    what: 'a mark: it commits, then sends and waits for the ack; a crash in between loses the event',
  },
  'dual-write-platformatic': {
    ...MARK,
    what: 'a mark: the same, on @platformatic/kafka',
  },
  textbook: {
    ...MARK,
    what: 'the outbox of many articles: it writes a row, sends it and updates it, one by one; a poller takes 100 rows every 7 s',
  },
  'bare-idea': {
    ...MARK,
    what: 'a mark: it writes a row, then sends and updates at once all that was committed meanwhile; it has no leases, order, retries or fallback',
  },
  'postgres-only': { ...MARK, what: 'a mark: it runs the same transactions and sends nothing' },
  'kafkajs-only': {
    what: 'a mark: it sends the same messages from memory, in batches of 500',
    driver: '',
    tuned: '',
  },
  'platformatic-only': {
    what: 'a mark: the same, on @platformatic/kafka',
    driver: '',
    tuned: '',
  },
  'pg-transactional-outbox-polling': {
    what: 'it writes a row for each event and polls for it',
    driver: PG,
    tuned: '50 rows every 50 ms',
  },
  'pg-transactional-outbox-wal': {
    what: 'it writes a row for each event and reads it from the write-ahead log',
    driver: PG,
    tuned: 'ten at once',
  },
  'graphile-worker': {
    what: 'it writes a job for each event; NOTIFY wakes the worker',
    driver: PG,
    tuned: '50 jobs at once from a local queue of 200, completed in batches',
  },
  'nest-native-messaging': {
    what: 'it writes a row for each event; COMMIT wakes its one worker; several workers send the same rows',
    driver: PG,
    tuned: 'claims of 200',
  },
  'pg-boss': {
    what: 'it writes a job for each event; by default its worker takes one every two seconds',
    driver: PG,
    tuned: 'batches of 1,000, one after another while they are full; NOTIFY wakes the worker',
  },
}
