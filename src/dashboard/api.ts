// What the page and its server say to each other: JSON below `<basePath>/api/`. Times are ISO 8601 texts of the database's
// clock, lengths of time are milliseconds. No payload and no header leaves the server except through `events/<id>/content`.
//
// | request | response |
// |---|---|
// | GET overview?since=<at> | Overview; `since` is `at` of the last sample that the page has |
// | GET history?instance=<id>&topic=<topic> | HistoryAnswer; both are optional |
// | GET events?<EventQuery> | EventsAnswer |
// | GET events/<id> | EventAnswer |
// | GET events/<id>/content | EventContent |
// | GET groups | GroupsAnswer |
// | GET doctor | DoctorAnswer |
// | POST preview (PreviewRequest) | Preview |
// | POST retry, discard (ChangeRequest) | Changed |
// | POST purge ({}) | Changed |
// | POST pause, resume (PauseRequest) | PauseAnswer |
// | POST reroute (RerouteRequest) | Rerouted |
//
// A POST is JSON, from the same origin, with the header `x-aftercommit: 1`. A refusal is a Refusal with status 400, 401, 403,
// 404, 405, 409, 413, 415, 500 or 503. 401: no user is signed in, so a token may help. 403: this person may not.

export interface Refusal {
  readonly error: { readonly code: string; readonly message: string }
}

/** Exact as far as counting is cheap; otherwise there are at least this many. */
export interface CountAnswer {
  readonly count: number
  readonly exact: boolean
}

export type StatusName = 'scheduled' | 'pending' | 'failed' | 'published' | 'dead_letter'
export type FailureName = 'failed' | 'dead_letter'

/** One thing that is not as it should be, the worst first. `info` is good to know. */
export interface Finding {
  readonly severity: 'error' | 'warning' | 'info'
  /** Such as `circuit`, `dead`, `lag`, `no-instance`, or the name of the doctor's check: the page keeps its place by it. */
  readonly kind: string
  /** One sentence: what, where, since when. */
  readonly what: string
  /** One sentence: what to do about it; null where there is nothing to do. */
  readonly remedy: string | null
  /** Where the page shows more: a query of the events, the groups, the topics, the instances, the doctor. */
  readonly link: {
    readonly to: 'events' | 'groups' | 'topics' | 'instances' | 'doctor'
    readonly query: string
  } | null
  /** The topic whose events can be moved to another one. */
  readonly move?: string
}

export interface Overview {
  readonly now: string
  /** `schema.table`. */
  readonly table: string
  /** null: this person may only look. */
  readonly acting: { readonly by: string | null } | null
  /** What a purge deletes: what was published, or died, longer ago than this. null: neither this server nor an instance knows it. */
  readonly retention: {
    readonly publishedMs: number
    readonly deadMs: number | null
    /** This server does not know it, so it is the longest one of the instances. */
    readonly isOfInstances: boolean
  } | null
  readonly findings: readonly Finding[]
  readonly pending: CountAnswer
  readonly dead: CountAnswer
  readonly published: CountAnswer
  readonly due: number
  readonly retrying: number
  readonly held: number
  readonly oldestMs: number | null
  /** Where unsent events wait, the most first; a hundred topics at most. */
  readonly topics: readonly {
    readonly topic: string
    readonly pending: CountAnswer
    readonly oldestMs: number
  }[]
  /** From save to record, by event type, over the newest events. */
  readonly latency: readonly {
    readonly type: string
    readonly events: number
    readonly medianMs: number
    readonly p95Ms: number
    readonly maxMs: number
  }[]
  /** Types that are declared or were published lately, to choose from. */
  readonly types: readonly string[]
  readonly pauses: readonly PauseShown[]
  readonly instances: readonly InstanceShown[]
  /** How many milliseconds lie between two samples. */
  readonly sampleMs: number
  /** Since `since`, the oldest first. */
  readonly samples: readonly Sample[]
}

export interface PauseShown {
  /** null: everything. */
  readonly topic: string | null
  readonly since: string
  readonly by: string | null
  readonly reason: string | null
}

export interface InstanceShown {
  readonly id: string
  readonly workerId: string
  readonly host: string
  readonly pid: number
  readonly version: string
  readonly startedAt: string
  readonly seenMsAgo: number
  /** Two of its beats did not come, and it is not lost yet. */
  readonly isLate: boolean
  /** Not seen for so long that it is dead or frozen. */
  readonly isLost: boolean
  /** Lost, and that is trouble: no other instance has taken its place, or it happened minutes ago. */
  readonly isMissed: boolean
  readonly publishers: readonly {
    readonly name: string
    readonly topics: readonly string[] | null
  }[]
  readonly immediate: boolean
  readonly poller: boolean
  readonly inFlight: number
  readonly circuits: readonly {
    readonly publisher: string
    /** null: the whole broker. */
    readonly topic: string | null
    readonly forMs: number
    readonly error: string
  }[]
}

/** The outbox at one moment. Rates are since the sample before. */
export interface Sample {
  /** Milliseconds since 1970. */
  readonly at: number
  /** null: nothing read the table then. */
  readonly pending: number | null
  readonly dead: number | null
  readonly oldestMs: number | null
  /** Events a second; null while there is no sample to compare with. */
  readonly immediate: number | null
  readonly fallback: number | null
  readonly failed: number | null
  /** From COMMIT to ack on the immediate path, within this sample; null when nothing was published. */
  readonly latency: {
    readonly p50Ms: number
    readonly p95Ms: number
    readonly p99Ms: number
  } | null
}

/** What instances did in the last hours, minute by minute, as far as they have written it. */
export interface HistoryAnswer {
  /** How many milliseconds lie between two samples. */
  readonly stepMs: number
  /** The oldest first. Latencies are not known by topic, and what the table held is not by instance or topic. */
  readonly samples: readonly Sample[]
  /** Every one that has a history, the last started first. */
  readonly instances: readonly {
    readonly id: string
    readonly workerId: string
    readonly host: string
    readonly state: 'running' | 'stopped' | 'lost'
  }[]
  readonly topics: readonly string[]
}

/** All are texts, as in an address. */
export interface EventQuery {
  readonly id?: string
  /** One or more, separated by commas. */
  readonly status?: string
  readonly type?: string
  readonly topic?: string
  readonly aggregateType?: string
  readonly aggregateId?: string
  /** As a group has it, or a whole error. */
  readonly error?: string
  readonly savedSince?: string
  readonly savedBefore?: string
  readonly order?: 'newest' | 'oldest'
  readonly after?: string
  readonly limit?: string
}

export interface EventShown {
  readonly id: string
  readonly seq: number
  readonly status: StatusName
  readonly type: string
  readonly aggregateType: string
  readonly aggregateId: string
  readonly topic: string
  readonly attempts: number
  readonly maxAttempts: number
  readonly createdAt: string
  readonly availableAt: string
  readonly publishedAt: string | null
  /** When it is or was due, if it was scheduled. */
  readonly deliverAt: string | null
  readonly workerId: string | null
  readonly isLeased: boolean
  /** Its topic, or everything, is paused, and it is not finished. */
  readonly isPaused: boolean
  /** What a running instance reports out of reach, if it is not finished: once it is due, it waits for that. */
  readonly waitsFor: 'topic' | 'broker' | null
  readonly error: string | null
}

export interface EventsAnswer {
  readonly now: string
  readonly events: readonly EventShown[]
  /** `after` of the next page; null at the end. With few or no events: the search has looked at as much as it may at a time. */
  readonly next: string | null
  /** How far back the search has looked, if it ended for that reason. */
  readonly lookedUntil: string | null
}

export interface EventAnswer extends EventShown {
  readonly now: string
  readonly lane: string
  readonly occurredAt: string
  readonly updatedAt: string
  readonly lastAttemptAt: string | null
  /** What it waits for. Whether a dead letter among it holds it is not always known to `aftercommit dashboard`. */
  readonly behind: readonly {
    readonly id: string
    readonly status: StatusName
    readonly seq: number
  }[]
}

export interface EventContent {
  /** JSON text as it is sent, or what the redaction hook made of it. */
  readonly payload: string
  readonly headers: Readonly<Record<string, string>>
  readonly isRedacted: boolean
}

export interface GroupShown {
  readonly status: FailureName
  readonly type: string
  readonly topic: string
  readonly error: string
  readonly count: number
  readonly exact: boolean
  readonly firstAt: string
  readonly lastAt: string
  readonly example: { readonly id: string; readonly error: string }
}

export interface GroupsAnswer {
  readonly now: string
  readonly groups: readonly GroupShown[]
}

export interface DoctorAnswer {
  readonly now: string
  readonly checked: readonly string[]
  /** What could not be checked, such as what the role may not see. */
  readonly skipped: readonly { readonly check: string; readonly reason: string }[]
  readonly findings: readonly Finding[]
}

/** A selection names no more ids than this. */
export const MOST_IDS = 1_000

/** Which failures an action is about: every given field must match. `all` excludes the others. */
export interface Selection {
  readonly all?: true
  readonly status?: FailureName
  readonly id?: readonly string[]
  readonly type?: string
  readonly topic?: string
  readonly aggregateType?: string
  readonly aggregateId?: string
  readonly error?: string
  readonly savedSince?: string
  readonly savedBefore?: string
}

export type PreviewRequest =
  | { readonly act: 'retry' | 'discard'; readonly selection: Selection }
  | { readonly act: 'purge' }
  | { readonly act: 'pause'; readonly topic: string | null }
  | { readonly act: 'reroute'; readonly topic: string }

export interface Preview extends CountAnswer {
  /** Pass it with the action, so that it changes no event that came after the count. */
  readonly asOf: string
  /** The topic to pause may be mistyped: no event of it waits, none is among the newest, and no instance names it. */
  readonly isUnknownTopic?: true
  /** Of a move: the topics that instances name or have sent to lately, and those of the newest events. */
  readonly topics?: readonly string[]
}

export interface ChangeRequest {
  readonly selection: Selection
  readonly asOf: string
}

export interface Changed {
  readonly count: number
}

/** Moves what is not sent yet from one topic to another. */
export interface RerouteRequest {
  readonly from: string
  readonly to: string
}

export interface Rerouted {
  readonly moved: number
  /** Left, because a process held them: a second request moves them once they are given back. */
  readonly held: number
}

export interface PauseRequest {
  readonly topic: string | null
  readonly reason?: string
}

export interface PauseAnswer {
  /** False: it was so already. */
  readonly changed: boolean
  readonly pauses: readonly PauseShown[]
}
