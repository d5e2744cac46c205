// The dashboard of a fixture's outbox, served by the real handler and opened in a real browser. A script error or a breach of
// the content security policy on any page fails the test.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, inject } from 'vitest'
import type { Outbox } from '../../src/index.ts'
import {
  dashboard,
  type DashboardOptions,
  type FetchHandler,
  toNodeListener,
} from '../../src/dashboard/dashboard.ts'
import type { Fixture } from './fixture.ts'
import { launchChromium } from './servers/chromium.ts'

/** A suite that needs a browser; without one it is skipped by name. */
export const describeWithChromium = describe.skipIf(inject('chromiumMissing') !== null)

export const PHONE = { viewport: { width: 360, height: 760 } } as const

type Opening = Partial<DashboardOptions> & {
  /** By default one that handles nothing. */
  readonly outbox?: Outbox
  readonly browser?: BrowserContextOptions
  /** Stands before the dashboard: returns a response of its own, or null. */
  readonly before?: (request: Request) => Response | null
}

export type DashboardPages = {
  /** A tab of its own with the dashboard; `where` follows the `#` of the address. By default ada may act. */
  open(where?: string, opening?: Opening): Promise<Page>
}

export function useDashboardPages(fixture: Fixture): DashboardPages {
  let browser: Browser
  const contexts: BrowserContext[] = []
  const servers: Server[] = []
  const problems: string[] = []

  beforeAll(async () => {
    browser = await launchChromium()
  })
  afterEach(async () => {
    await Promise.all(contexts.splice(0).map((context) => context.close()))
    for (const server of servers.splice(0)) {
      server.close()
      server.closeAllConnections()
    }
    expect(problems.splice(0)).toEqual([])
  })
  afterAll(() => browser.close())

  return {
    async open(where = '', { outbox, browser: options, before, ...given } = {}) {
      const authorize = () => ({ by: 'ada', mayAct: true })
      const served = dashboard(outbox ?? fixture.handling({}), { authorize, ...given })
      const server = await listen(async (request) => before?.(request) ?? (await served(request)))
      servers.push(server)
      const context = await browser.newContext({ reducedMotion: 'reduce', ...options })
      contexts.push(context)
      const page = await context.newPage()
      page.on('pageerror', ({ message }) => problems.push(message))
      page.on('console', (message) => {
        // A refusal that the page knows about is in the console too.
        if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) {
          problems.push(message.text())
        }
      })
      const { port } = server.address() as AddressInfo
      await page.goto(`http://127.0.0.1:${port}/outbox${where && `#${where}`}`)
      return page
    },
  }
}

/** The list of events of this filter, once it is there, and not the one of before. */
export function listOf(filter: string): string {
  return `.filter:has(${filter}) ~ .panel[aria-busy=false]`
}

async function listen(handler: FetchHandler): Promise<Server> {
  const server = createServer(toNodeListener(handler))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}
