// The dashboard in the frameworks that people use, each started for real and asked over HTTP: it shows, it acts, it refuses,
// and the rest of the application stays what it was.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { NestFactory } from '@nestjs/core'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import { dashboard, type FetchHandler, toNodeListener } from '../../../src/dashboard/dashboard.ts'
import { useFixture } from '../../support/fixture.ts'
import { seed } from '../../support/seeded-events.ts'

const fixture = useFixture()

// oxlint-disable-next-line typescript/no-extraneous-class -- a module of Nest is a class
class AppModule {}

type Mounted = { readonly port: number; close(): Promise<unknown> }
type Mount = (handler: FetchHandler) => Promise<Mounted>

async function listening(server: Server): Promise<Mounted> {
  if (!server.listening) await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((closed) => {
        server.close(closed)
        server.closeAllConnections()
      }),
  }
}

async function serveBeside(handler: FetchHandler): Promise<Mounted> {
  const listener = toNodeListener(handler)
  const server = createServer((request, response) => {
    if (request.url === '/') response.end('shop')
    else listener(request, response)
  })
  return await listening(server.listen(0, '127.0.0.1'))
}

const mounts: Record<string, Mount> = {
  'node:http': serveBeside,

  async Hono(handler) {
    const app = new Hono()
    app.get('/', (context) => context.text('shop'))
    app.all('/admin/outbox/*', ({ req }) => handler(req.raw))
    app.all('/admin/outbox', ({ req }) => handler(req.raw))
    return await listening(
      serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as unknown as Server,
    )
  },

  async Express(handler) {
    const app = express()
    app.get('/', (_, response) => void response.send('shop'))
    app.use('/admin/outbox', toNodeListener(handler))
    return await listening(app.listen(0, '127.0.0.1'))
  },

  async 'Express after a body parser'(handler) {
    const app = express()
    app.use(express.json())
    app.get('/', (_, response) => void response.send('shop'))
    app.use('/admin/outbox', toNodeListener(handler))
    return await listening(app.listen(0, '127.0.0.1'))
  },

  async Fastify(handler) {
    const app = fastify()
    const listener = toNodeListener(handler)
    app.get('/', () => 'shop')
    for (const url of ['/admin/outbox', '/admin/outbox/*']) {
      app.all(url, (request, reply) => {
        void reply.hijack()
        listener(Object.assign(request.raw, { body: request.body }), reply.raw)
      })
    }
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { ...(await listening(app.server)), close: () => app.close() }
  },

  async Nest(handler) {
    const app = await NestFactory.create({ module: AppModule }, { logger: false })
    app.use('/admin/outbox', toNodeListener(handler))
    app.use('/', (_: unknown, response: { end(text: string): void }) => response.end('shop'))
    await app.listen(0, '127.0.0.1')
    const { port } = await listening(app.getHttpServer() as Server)
    return { port, close: () => app.close() }
  },

  // As app/admin/outbox/[[...path]]/route.ts exports it; test/tools/next builds and starts a real one.
  async 'the exports of a Next route'(handler) {
    const route = { GET: handler, POST: handler }
    return await serveBeside((request) => route[request.method as 'GET' | 'POST'](request))
  },
}

describe.each(Object.entries(mounts))('%s', (_, mount) => {
  it('serves the dashboard beside the application', async () => {
    const outbox = fixture.handling({})
    const handler = dashboard(outbox, {
      basePath: '/admin/outbox',
      authorize: ({ headers }) => (headers.get('cookie') === 'who=ada' ? { mayAct: true } : null),
    })
    const mounted = await mount(handler)
    try {
      const origin = `http://127.0.0.1:${mounted.port}`
      const ask = (path: string, init: RequestInit = {}) =>
        fetch(`${origin}/admin/outbox/api/${path}`, {
          ...init,
          headers: { cookie: 'who=ada', ...(init.headers as Record<string, string>) },
        })
      await seed(fixture.sql, [{ status: 'dead_letter', type: 'Größe' }])
      const found = await ask('events?type=Gr%C3%B6%C3%9Fe&status=dead_letter')
      expect([found.status, await found.json()]).toMatchObject([200, { events: [{}] }])
      expect((await fetch(`${origin}/admin/outbox/api/overview`)).status).toBe(401)
      const headers = { 'content-type': 'application/json', 'x-aftercommit': '1', origin }
      const body = JSON.stringify({
        selection: { type: 'Größe' },
        asOf: new Date().toISOString(),
      })
      const other = { ...headers, origin: 'http://evil.example' }
      expect((await ask('retry', { method: 'POST', headers: other, body })).status).toBe(403)
      const retried = await ask('retry', { method: 'POST', headers, body })
      expect([retried.status, await retried.json()]).toEqual([200, { count: 1 }])
      expect(retried.headers.get('content-security-policy')).toContain("default-src 'none'")
      const empty = await ask('retry', { method: 'POST', headers })
      expect(empty.status).toBe(400)
      expect(await (await fetch(`${origin}/`)).text()).toBe('shop')
    } finally {
      await mounted.close()
    }
  })
})
