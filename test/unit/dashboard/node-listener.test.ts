// The handler behind node:http: what reaches it of a request, and what a client gets that goes away.
import { once } from 'node:events'
import { createServer, request as ask, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import {
  type FetchHandler,
  type NodeRequest,
  toNodeListener,
} from '../../../src/dashboard/dashboard.ts'
import { defer } from '../../support/timing/deferred.ts'

const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

async function listen(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

const echo: FetchHandler = async (request) =>
  Response.json({
    method: request.method,
    url: request.url,
    cookie: request.headers.get('cookie'),
    body: await request.text(),
  })

it('passes on the method, the address, the headers and the body', async () => {
  const port = await listen(toNodeListener(echo))
  const response = await fetch(`http://127.0.0.1:${port}/a/b?c=%20d`, {
    method: 'POST',
    headers: { cookie: 'a=1' },
    body: 'ü'.repeat(100_000),
  })
  expect(await response.json()).toEqual({
    method: 'POST',
    url: `http://127.0.0.1:${port}/a/b?c=%20d`,
    cookie: 'a=1',
    body: 'ü'.repeat(100_000),
  })
})

it.each([
  ['an object', { a: 1 }, '{"a":1}'],
  ['a text', 'a=1', 'a=1'],
  ['bytes', Buffer.from('abc'), 'abc'],
])('takes what a body parser has read: %s', async (_, body, expected) => {
  const listener = toNodeListener(echo)
  const port = await listen((incoming: NodeRequest, outgoing) => {
    incoming.resume().on('end', () => listener(Object.assign(incoming, { body }), outgoing))
  })
  const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: 'as sent' })
  expect(await response.json()).toMatchObject({ body: expected })
})

it('takes the address from before the framework cut it', async () => {
  const listener = toNodeListener(echo)
  const port = await listen((incoming, outgoing) => {
    listener(Object.assign(incoming, { originalUrl: incoming.url, url: '/' }), outgoing)
  })
  const response = await fetch(`http://127.0.0.1:${port}/admin/outbox?x=1`)
  expect(await response.json()).toMatchObject({ url: `http://127.0.0.1:${port}/admin/outbox?x=1` })
})

it('does not take a path for a host', async () => {
  const port = await listen(toNodeListener(echo))
  const socket = connect(port, '127.0.0.1')
  socket.write('GET //evil.example/api HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n')
  const chunks: Buffer[] = await socket.toArray()
  expect(Buffer.concat(chunks).toString()).toContain(
    '"url":"http://shop.example//evil.example/api"',
  )
})

it('refuses a host that is none', async () => {
  const port = await listen(toNodeListener(echo))
  const asked = ask({ port, host: '127.0.0.1', headers: { host: 'a b' } }).end()
  const [response] = (await once(asked, 'response')) as [{ statusCode: number }]
  expect(response.statusCode).toBe(400)
})

it('tells the handler that the client went away', async () => {
  const [begun, gone] = [defer(), defer()]
  const port = await listen(
    toNodeListener(async ({ signal }) => {
      begun.resolve()
      signal.addEventListener('abort', () => gone.resolve())
      await gone.promise
      return new Response('too late')
    }),
  )
  const leaving = new AbortController()
  const asked = fetch(`http://127.0.0.1:${port}/`, { signal: leaving.signal })
  await begun.promise
  leaving.abort()
  await expect(asked).rejects.toThrow('aborted')
  await gone.promise
})

it('closes the connection of a handler that fails', async () => {
  const port = await listen(toNodeListener(() => Promise.reject(new Error('a fault'))))
  await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow('fetch failed')
})

it('does not take a part of the host for the path', async () => {
  const port = await listen(toNodeListener(echo))
  const headers = { host: 'shop.example/admin/outbox/api/groups?x=' }
  const asked = ask({ port, host: '127.0.0.1', path: '/public', headers }).end()
  const [response] = (await once(asked, 'response')) as [{ statusCode: number }]
  expect(response.statusCode).toBe(400)
})
