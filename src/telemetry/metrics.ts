// Every metric of the outbox, under one name for OpenTelemetry and Prometheus. The names follow the rules by which
// OpenTelemetry's Prometheus exporters translate names, so that dashboards and alerts work with either.

export type Label = 'topic' | 'path' | 'publisher' | 'step'

export interface Metric {
  /** Without the prefix `aftercommit.`. */
  readonly name: string
  readonly unit: 's' | '{event}' | '{error}' | '{circuit}' | '{pause}' | ''
  /** Of few values each: never an id of an event or an aggregate. */
  readonly labels: readonly Label[]
  readonly help: string
}

/** They only grow. Of this process. */
export const COUNTERS = {
  saved: {
    name: 'events.saved',
    unit: '{event}',
    labels: ['topic'],
    help: 'Events whose transaction committed in this process',
  },
  published: {
    name: 'events.published',
    unit: '{event}',
    labels: ['topic', 'path'],
    help: 'Events that the broker has acknowledged, by the path that sent them',
  },
  failed: {
    name: 'events.failed',
    unit: '{event}',
    labels: ['topic', 'path'],
    help: 'Sends that failed and will be tried again, outages included',
  },
  dead: {
    name: 'events.dead',
    unit: '{event}',
    labels: ['topic'],
    help: 'Events that became dead letters',
  },
  duplicates: {
    name: 'events.duplicates',
    unit: '{event}',
    labels: ['topic', 'path'],
    help: 'Events that were sent although they had been recorded as published',
  },
  claimed: {
    name: 'events.claimed',
    unit: '{event}',
    labels: ['publisher'],
    help: 'Events that the fallback has taken over',
  },
  errors: {
    name: 'errors',
    unit: '{error}',
    labels: ['step'],
    help: 'Background steps that failed',
  },
} as const satisfies Record<string, Metric>

/** What is so now. */
export const GAUGES = {
  inFlight: {
    name: 'in_flight',
    unit: '{event}',
    labels: ['publisher'],
    help: 'Events that this process holds: queued, under way, or not recorded yet',
  },
  circuits: {
    name: 'circuits.open',
    unit: '{circuit}',
    labels: ['publisher'],
    help: 'Destinations of the publisher that are out of reach: topics, or the whole broker',
  },
  reachable: {
    name: 'database.reachable',
    unit: '',
    labels: [],
    help: '1 if the table could be read, else 0',
  },
  pending: {
    name: 'events.pending',
    unit: '{event}',
    labels: [],
    help: 'Unsent events in the table, without those scheduled for later, counted up to 100000',
  },
  scheduled: {
    name: 'events.scheduled',
    unit: '{event}',
    labels: [],
    help: 'Events that are scheduled for later, counted up to 10000',
  },
  due: {
    name: 'events.due',
    unit: '{event}',
    labels: [],
    help: 'Unsent events that no process holds and that need not wait',
  },
  held: {
    name: 'events.held',
    unit: '{event}',
    labels: [],
    help: 'Unsent events behind one that has failed',
  },
  deadLetters: {
    name: 'dead_letters',
    unit: '{event}',
    labels: [],
    help: 'Dead letters in the table, counted up to 100000',
  },
  oldest: {
    name: 'oldest_pending',
    unit: 's',
    labels: [],
    help: 'Age of the oldest unsent event, from its save or from when it was due; 0 if there is none',
  },
  paused: {
    name: 'paused',
    unit: '{pause}',
    labels: [],
    help: 'Topics that are paused; a pause of everything counts as one',
  },
} as const satisfies Record<string, Metric>

/** Times of this process. */
export const HISTOGRAMS = {
  commitToAck: {
    name: 'commit_to_ack.duration',
    unit: 's',
    labels: ['topic'],
    help: 'From COMMIT to the ack of the broker, on the immediate path',
  },
  send: {
    name: 'send.duration',
    unit: 's',
    labels: ['publisher'],
    help: 'One send of a batch, until the client has settled',
  },
  claim: {
    name: 'claim.duration',
    unit: 's',
    labels: ['publisher'],
    help: 'One claim of the fallback',
  },
  record: {
    name: 'record.duration',
    unit: 's',
    labels: [],
    help: 'One record of outcomes',
  },
  poll: {
    name: 'poll.duration',
    unit: 's',
    labels: ['publisher'],
    help: 'One round of the fallback, from the claim until the outcomes are recorded',
  },
} as const satisfies Record<string, Metric>

/** Upper bounds in seconds. Most acks take 2 to 50 ms; nothing on the immediate path lasts longer than the threshold. */
export const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

export type CounterKey = keyof typeof COUNTERS
export type GaugeKey = keyof typeof GAUGES
export type HistogramKey = keyof typeof HISTOGRAMS
