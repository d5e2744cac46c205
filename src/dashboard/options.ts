// The options of dashboard(), checked once.
import { rejectUnknown } from '../checks/checks.ts'
import { show } from '../checks/duration.ts'
import { OutboxOptionsError } from '../errors.ts'
import { nameIn } from './hosts.ts'

/** What a person may do. */
export interface Access {
  /** Who it is, for the log and for pauses. */
  by?: string
  /** Whether this person may retry, discard, pause, resume and purge. @default false */
  mayAct?: boolean
}

/** What `redact` is given. */
export interface RedactedContent {
  /** The parsed payload, or what takes its place. */
  payload: unknown
  headers: Readonly<Record<string, string>>
}

export interface EventToRedact extends RedactedContent {
  readonly type: string
  readonly topic: string
}

export interface DashboardOptions {
  /**
   * Returns who sends the request, and what that person may do. Called for each request of data; it must not read the body.
   * null: no user is signed in (401). false: this person may not see the dashboard (403). If it throws, the request is
   * refused and the error is logged.
   */
  authorize: (
    request: Request,
  ) => Access | null | false | undefined | Promise<Access | null | false | undefined>
  /** Where the application mounts the handler: the path that all its requests begin with. @default '/outbox' */
  basePath?: string
  /**
   * The host names that the dashboard accepts, such as `ops.example` or `10.0.0.7:3000`; this machine's own are always
   * accepted. Set it where `authorize` lets everyone in, and behind a proxy that changes the host: then name both hosts.
   * @default any host, and changes come from a page of the same host
   */
  hosts?: readonly string[]
  /**
   * Changes what the page shows of an event's content. If it throws, none of the content is shown. @default payload and
   * headers as they are
   */
  redact?: (event: EventToRedact) => RedactedContent | Promise<RedactedContent>
}

export interface ResolvedDashboardOptions {
  readonly authorize: DashboardOptions['authorize']
  /** Without a slash at its end, so empty at the root. */
  readonly basePath: string
  /** In lower case; null: any. */
  readonly hosts: readonly string[] | null
  readonly redact: DashboardOptions['redact'] | null
}

export function resolveDashboardOptions(given: DashboardOptions): ResolvedDashboardOptions {
  rejectUnknown('dashboard()', given, ['authorize', 'basePath', 'hosts', 'redact'])
  const { authorize, basePath = '/outbox', hosts, redact } = given
  if (typeof authorize !== 'function') {
    throw new OutboxOptionsError(
      `authorize must be a function that decides who may see the dashboard, got ${show(authorize)}; on your own machine, authorize: () => ({ mayAct: true }) lets everyone in`,
    )
  }
  if (redact !== undefined && typeof redact !== 'function') {
    throw new OutboxOptionsError(
      `redact must be a function that returns { payload, headers }, got ${show(redact)}`,
    )
  }
  return Object.freeze({
    authorize,
    basePath: checkPath(basePath),
    hosts: hosts === undefined ? null : checkHosts(hosts),
    redact: redact ?? null,
  })
}

function isHost(value: unknown): boolean {
  return typeof value === 'string' && nameIn(value) !== null
}

function checkHosts(hosts: unknown): readonly string[] {
  if (Array.isArray(hosts) && hosts.length > 0 && hosts.every(isHost)) {
    return (hosts as string[]).map((host) => host.toLowerCase().replace(/^\[(.+)\]$/, '$1'))
  }
  throw new OutboxOptionsError(
    `hosts must be a list of host names such as 'ops.example' or '10.0.0.7:3000', got ${show(hosts)}`,
  )
}

/** It becomes part of the page, so it holds nothing that HTML or an address would read in another way. */
const PATH = /^(\/[\w.~-]+)*$/

function checkPath(basePath: unknown): string {
  const path = basePath === '/' ? '' : basePath
  if (typeof path === 'string' && PATH.test(path) && !/\/\.{1,2}(\/|$)/.test(path)) return path
  throw new OutboxOptionsError(
    `basePath must be a path such as '/outbox' or '/admin/outbox', without a slash at its end, got ${show(basePath)}`,
  )
}
