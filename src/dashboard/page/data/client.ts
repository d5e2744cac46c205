// The one place that talks to the server: adds the token and the header that makes a POST safe from other origins, and
// turns every refusal into an ApiError. On 401 it asks for a token once, however many requests wait for it, and repeats
// them.
import type { Refusal } from '../../api.ts'
import { toSentence } from './format.ts'

const TOKEN = 'aftercommit-token'
const PATIENCE_MS = {
  GET: 20_000,
  /** A change may be of a million events, and goes on without us. */ POST: 600_000,
}

export class ApiError extends Error {
  /** 0: the server did not respond. */
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

type Prompt = (wasRefused: boolean) => Promise<string>

let prompt: Prompt | null = null
let prompting: Promise<void> | null = null

/** The dialog that asks a person for the token. */
export function setTokenPrompt(ask: Prompt): void {
  prompt = ask
}

export function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return request<T>(path, { method: 'GET' }, signal)
}

export function post<T>(path: string, body: object): Promise<T> {
  const headers = { 'content-type': 'application/json', 'x-aftercommit': '1' }
  return request<T>(path, { method: 'POST', headers, body: JSON.stringify(body) })
}

type Init = RequestInit & { readonly method: 'GET' | 'POST' }

async function request<T>(path: string, init: Init, signal?: AbortSignal): Promise<T> {
  const token = sessionStorage.getItem(TOKEN)
  const answer = await send(path, init, token, signal)
  if (answer.status === 401 && prompt) {
    // Another request may have got a new token while this one was on its way.
    if (sessionStorage.getItem(TOKEN) === token) await renewToken(token !== null)
    return await request<T>(path, init, signal)
  }
  if (!answer.ok) throw await refusalOf(answer)
  return (await answer.json()) as T
}

async function send(
  path: string,
  init: Init,
  token: string | null,
  signal?: AbortSignal,
): Promise<Response> {
  const headers = new Headers(init.headers)
  if (token !== null) headers.set('authorization', `Bearer ${token}`)
  const timeout = AbortSignal.timeout(PATIENCE_MS[init.method])
  const either = signal ? AbortSignal.any([signal, timeout]) : timeout
  try {
    return await fetch(`${basePath()}/api/${path}`, {
      ...init,
      headers,
      signal: either,
      cache: 'no-store',
    })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new ApiError(0, 'unreachable', 'The server of the dashboard does not respond.')
  }
}

function renewToken(wasRefused: boolean): Promise<void> {
  prompting ??= prompt!(wasRefused)
    .then((token) => sessionStorage.setItem(TOKEN, token))
    .finally(() => {
      prompting = null
    })
  return prompting
}

async function refusalOf(answer: Response): Promise<ApiError> {
  const refusal = (await answer.json().catch(() => null)) as Refusal | null
  const { code, message } = refusal?.error ?? {
    code: 'unknown',
    message: `The server responded with status ${answer.status}.`,
  }
  return new ApiError(
    answer.status,
    code,
    `${toSentence(message)}${/[.?!]$/.test(message) ? '' : '.'}`,
  )
}

function basePath(): string {
  return document.querySelector<HTMLMetaElement>('meta[name=base]')?.content ?? ''
}
