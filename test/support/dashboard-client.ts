// Talks to a dashboard's handler as its page does.
import { expect } from 'vitest'
import type { FetchHandler } from '../../src/dashboard/dashboard.ts'

export type Answer<T> = { readonly status: number; readonly body: T; readonly headers: Headers }

/** What a test expects of a refusal. */
export const refused = (status: number, code: string) => ({
  status,
  body: { error: { code, message: expect.any(String) } },
})

const ORIGIN = 'http://shop.example'

export const OWN_PAGE = {
  'content-type': 'application/json',
  'x-aftercommit': '1',
  origin: ORIGIN,
}

export function clientOf(handler: FetchHandler, base = '/outbox') {
  const ask = async <T>(path: string, init: RequestInit = {}): Promise<Answer<T>> => {
    const { status, headers, ...response } = await answerOf(
      handler,
      `${ORIGIN}${base}${path}`,
      init,
    )
    return { status, headers, body: response.body as T }
  }
  return {
    ask,
    get: <T>(path: string, headers: Record<string, string> = {}) =>
      ask<T>(`/api/${path}`, { headers }),
    post: <T>(path: string, body: unknown, headers: Record<string, string> = OWN_PAGE) =>
      ask<T>(`/api/${path}`, {
        method: 'POST',
        headers,
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
  }
}

async function answerOf(handler: FetchHandler, url: string, init: RequestInit) {
  const response = await handler(new Request(url, init))
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  return {
    status: response.status,
    headers: response.headers,
    body: isJson ? (JSON.parse(text) as unknown) : text,
  }
}
