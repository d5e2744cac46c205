// Lets a web-standard handler serve requests of node:http, and so of Express, Fastify and Nest.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { FetchHandler } from './handler.ts'

type Body = NonNullable<RequestInit['body']>

/** A request, with what frameworks add to it. */
export interface NodeRequest extends IncomingMessage {
  /** The address before the framework cut off where the listener is mounted. */
  originalUrl?: string | undefined
  /** What a body parser has read. */
  body?: unknown
}

export type NodeListener = (request: NodeRequest, response: ServerResponse) => void

export function toNodeListener(handler: FetchHandler): NodeListener {
  return (incoming, outgoing) => {
    void answer(handler, incoming, outgoing).catch(() => outgoing.destroy())
  }
}

async function answer(
  handler: FetchHandler,
  incoming: NodeRequest,
  outgoing: ServerResponse,
): Promise<void> {
  const gone = new AbortController()
  outgoing.on('close', () => gone.abort())
  const request = toRequest(incoming, gone.signal)
  if (!request) {
    outgoing.writeHead(400).end()
    return
  }
  const response = await handler(request)
  const body = Buffer.from(await response.arrayBuffer())
  if (outgoing.destroyed) return
  outgoing.writeHead(response.status, Object.fromEntries(response.headers))
  outgoing.end(incoming.method === 'HEAD' ? undefined : body)
}

/** null: there is no such address, or the method is not supported. */
function toRequest(incoming: NodeRequest, signal: AbortSignal): Request | null {
  const { method = 'GET', socket, originalUrl, url = '/' } = incoming
  const protocol = 'encrypted' in socket ? 'https' : 'http'
  const host = incoming.headers.host ?? incoming.headers[':authority'] ?? 'localhost'
  if (!/^[\w.:[\]-]+$/.test(String(host))) return null
  try {
    // Not relative to the host: a path may begin with two slashes.
    const address = new URL(`${protocol}://${String(host)}${pathOf(originalUrl ?? url)}`)
    return new Request(address, {
      method,
      headers: headersOf(incoming),
      signal,
      ...(method !== 'GET' && method !== 'HEAD' && { body: bodyOf(incoming), duplex: 'half' }),
    })
  } catch {
    return null
  }
}

/** A proxy may send a whole address. */
function pathOf(url: string): string {
  if (url.startsWith('/')) return url
  const { pathname, search } = new URL(url)
  return `${pathname}${search}`
}

function headersOf({ headers }: IncomingMessage): Headers {
  const taken = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith(':') || value === undefined) continue
    for (const one of [value].flat()) taken.append(name, one)
  }
  return taken
}

function bodyOf(incoming: NodeRequest): Body {
  const { body } = incoming
  if (body === undefined || !incoming.readableEnded) return Readable.toWeb(incoming) as Body
  if (typeof body === 'string' || body instanceof Uint8Array) return body as Body
  return JSON.stringify(body)
}
