// Who may see and who may act. A request that changes something must come from the page itself: another site can make a
// browser send a request with its cookies, but neither JSON, nor our header, nor from our origin.
import type { Logger } from '../runtime/logger.ts'
import { isOneOf } from './hosts.ts'
import type { Access, DashboardOptions } from './options.ts'
import { RefusedError } from './refusal.ts'

/** The person behind a request. */
export interface Person {
  readonly by: string | null
  readonly mayAct: boolean
}

export async function admit(
  request: Request,
  authorize: DashboardOptions['authorize'],
  logger: Logger,
): Promise<Person> {
  const access = await ask(request, authorize, logger)
  if (access === null || access === undefined) {
    throw new RefusedError(401, 'UNAUTHORIZED', 'sign in, or give a token, to see this')
  }
  if (access === false) throw forbidden('you may not see this')
  const { by, mayAct } = access
  return { by: typeof by === 'string' && by !== '' ? by : null, mayAct: mayAct === true }
}

/** Before anything is changed. */
export function requireActor({ mayAct }: Person): void {
  if (!mayAct) throw forbidden('you may look, and change nothing', 'READ_ONLY')
}

async function ask(
  request: Request,
  authorize: DashboardOptions['authorize'],
  logger: Logger,
): Promise<Access | null | false | undefined> {
  let access: unknown
  try {
    access = await authorize(request)
  } catch (error) {
    logger.error({ err: error }, 'authorize of the dashboard failed, so the request was refused')
    return false
  }
  if (access === null || access === undefined || access === false) return access
  if (isAccess(access)) return access
  logger.error(
    { returned: typeof access },
    'authorize of the dashboard must return { by, mayAct }, null or false, so the request was refused',
  )
  return false
}

/** Anything else, such as a Response, is most often a refusal in another framework's form. */
function isAccess(value: unknown): value is Access {
  if (Object.prototype.toString.call(value) !== '[object Object]') return false
  return Object.keys(value as object).every((key) => key === 'by' || key === 'mayAct')
}

function forbidden(message: string, code = 'FORBIDDEN'): RefusedError {
  return new RefusedError(403, code, message)
}

/** `hosts`: those that the dashboard accepts; null: any. */
export function requireOwnHost(request: Request, hosts: readonly string[] | null): void {
  const host = hostOf(request)
  if (!hosts || isOneOf(hosts, host)) return
  throw forbidden(
    `this dashboard does not answer to the host name ${host}; add it to the option hosts, or start aftercommit dashboard with --allow-host`,
    'WRONG_HOST',
  )
}

function hostOf({ url, headers }: Request): string {
  return (headers.get('host') ?? new URL(url).host).toLowerCase()
}

/** For each POST. */
export function requireOwnPage(request: Request, hosts: readonly string[] | null): void {
  const { headers } = request
  const [type = ''] = (headers.get('content-type') ?? '').split(';')
  if (type.trim().toLowerCase() !== 'application/json') {
    throw new RefusedError(415, 'NOT_JSON', 'the request must be application/json')
  }
  if (headers.get('x-aftercommit') !== '1') {
    throw forbidden('the request lacks the header x-aftercommit: 1', 'WRONG_ORIGIN')
  }
  if (!isSameOrigin(request, hosts)) {
    throw forbidden('the request comes from another site', 'WRONG_ORIGIN')
  }
}

/** Browsers say `sec-fetch-site` on https and on localhost, and `origin` with each POST. Neither is set by a script. */
function isSameOrigin(request: Request, hosts: readonly string[] | null): boolean {
  const { url, headers } = request
  const site = headers.get('sec-fetch-site')
  if (site !== null) return site === 'same-origin'
  const origin = headers.get('origin')
  if (origin === null || !URL.canParse(origin)) return false
  const { host } = new URL(origin)
  // A proxy may have changed the host. What it was is said by the option `hosts` alone: a header could be forged.
  return [hostOf(request), new URL(url).host, ...(hosts ?? [])].includes(host)
}
