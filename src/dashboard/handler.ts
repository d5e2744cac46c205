// From a request to its response: which route it is, who sends it, and what that person may do. A refusal comes before
// anything is read or changed.
import { change, moveEvents, pause, preview, purge, resume } from './acting.ts'
import { admit, type Person, requireActor, requireOwnHost, requireOwnPage } from './access.ts'
import { content, event, events, groups } from './events.ts'
import { Checkup } from './checkup.ts'
import { examine } from './examination.ts'
import { HistoryReader } from './history.ts'
import { readSearch } from './input.ts'
import { resolveDashboardOptions, type DashboardOptions } from './options.ts'
import { overview } from './overview.ts'
import { PageFiles } from './page-files.ts'
import { RefusedError, refuseLocked, toRefusal } from './refusal.ts'
import { refuse, toJson } from './responses.ts'
import { Sampler } from './sampler.ts'
import { isLocked } from '../store/database.ts'
import { blockedBy } from '../upkeep/doctor/locks.ts'
import { type DashboardSource, look } from './source.ts'

/** A web-standard handler, as Hono, Next and others take it. */
export type FetchHandler = (request: Request) => Promise<Response>

interface Asked {
  readonly request: Request
  readonly url: URL
  readonly person: Person
}

type Answer = (asked: Asked) => Promise<unknown>

interface Routes {
  readonly GET: Readonly<Record<string, Answer>>
  readonly POST: Readonly<Record<string, Answer>>
}

/** These change nothing. */
const READING_POSTS = ['preview']

const EVENT = /^events\/([^/]+)(\/content)?$/

export function handlerOf(source: DashboardSource, given: DashboardOptions): FetchHandler {
  const options = resolveDashboardOptions(given)
  const { basePath } = options
  const sampler = new Sampler(() => look(source))
  const files = new PageFiles(basePath)
  const checkup = new Checkup(() => examine(source), source.logger)
  const history = new HistoryReader(() => source.store.control.histories())
  const routes = routesOf(source, { sampler, checkup, history })

  const answerOf = (method: string, path: string): Answer => {
    const [, id, isContent] = EVENT.exec(path) ?? []
    if (id !== undefined && method === 'GET') {
      return isContent ? () => content(source, id, options.redact) : () => event(source, id)
    }
    const own = Object.entries(routes).filter(([, paths]) => Object.hasOwn(paths, path))
    const found = own.find(([name]) => name === method)
    if (found) return found[1][path]!
    if (own.length === 0 && id === undefined) throw notFound()
    throw new RefusedError(405, 'METHOD', `${method} is not allowed at this address`)
  }

  const answer = async (request: Request): Promise<Response> => {
    requireOwnHost(request, options.hosts)
    const url = new URL(request.url)
    const path = pathBelow(basePath, url.pathname)
    if (!path.startsWith('api/')) return await files.serve(path, request)
    const name = path.slice('api/'.length)
    const act = answerOf(request.method, name)
    if (request.method === 'POST') requireOwnPage(request, options.hosts)
    const person = await admit(request, options.authorize, source.logger)
    if (request.method === 'POST' && !READING_POSTS.includes(name)) requireActor(person)
    return toJson(await act({ request, url, person }))
  }

  return async (request) => {
    try {
      return await answer(request)
    } catch (error) {
      const locked = isLocked(error) ? await nameLock(source) : null
      return refuse(locked ?? toRefusal(error, source.logger))
    }
  }
}

interface Kept {
  readonly sampler: Sampler
  readonly checkup: Checkup
  readonly history: HistoryReader
}

function routesOf(source: DashboardSource, { sampler, checkup, history }: Kept): Routes {
  return {
    GET: {
      overview: ({ person, url }) => overview(source, { sampler, checkup }, person, url),
      history: ({ url }) => history.answer(url),
      events: ({ url }) => events(source, readSearch(url)),
      groups: () => groups(source),
      doctor: () => checkup.run(),
    },
    POST: {
      preview: ({ request }) => preview(source, request),
      retry: ({ request, person }) => change(source, 'retry', request, person),
      discard: ({ request, person }) => change(source, 'discard', request, person),
      purge: ({ request, person }) =>
        purge(source, request, person).finally(() => checkup.expire()),
      reroute: ({ request, person }) => moveEvents(source, request, person),
      pause: ({ request, person }) => pause(source, sampler, request, person),
      resume: ({ request, person }) => resume(source, sampler, request, person),
    },
  }
}

/** null: the lock is gone, or is on single rows, or the database does not say. */
async function nameLock({ doctor }: DashboardSource): Promise<RefusedError | null> {
  const blockers = await doctor.blockers().catch(() => [])
  if (blockers.length === 0) return null
  const named = blockedBy(blockers).map(({ message, remedy }) => `${message}; ${remedy}`)
  return refuseLocked(`nothing more was read or changed: ${named.join('; ')}`)
}

function pathBelow(basePath: string, pathname: string): string {
  if (pathname === basePath) return ''
  if (pathname.startsWith(`${basePath}/`)) return pathname.slice(basePath.length + 1)
  throw notFound()
}

function notFound(): RefusedError {
  return new RefusedError(404, 'NOT_FOUND', 'there is no such address; check basePath')
}
