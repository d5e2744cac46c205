// npm run screenshots: the pictures of the dashboard in docs/dashboard, of a shop in trouble. Postgres, handler, page and browser are
// real; only the last hour, which nobody wants to wait for, is made up.
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { drizzle } from 'drizzle-orm/postgres-js'
import type { Browser, Page } from 'playwright-core'
import postgres from 'postgres'
import type { Overview } from '../../../src/dashboard/api.ts'
import { dashboard, toNodeListener } from '../../../src/dashboard/dashboard.ts'
import { createOutbox } from '../../../src/index.ts'
import { handlersPublisher } from '../../../src/publishers/handlers.ts'
import { buildPage } from '../../support/run/built-page.ts'
import { launchChromium } from '../../support/servers/chromium.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { makeUpHour } from './hour.ts'
import { toPalettePng } from './palette.ts'
import { fillShop, findExample } from './shop.ts'

const FOLDER = fileURLToPath(new URL('../../../docs/dashboard/', import.meta.url))
const SIZES = {
  wide: { viewport: { width: 1440, height: 1000 } },
  phone: { viewport: { width: 390, height: 844 }, isMobile: true, deviceScaleFactor: 1.5 },
} as const

type Shot = readonly [
  view: string,
  theme: 'light' | 'dark',
  size: keyof typeof SIZES,
  where: string,
  there: string,
]

async function main(): Promise<void> {
  await buildPage()
  const server = await startPostgres()
  const client = postgres(server.url, { onnotice: () => {} })
  const browser = await launchChromium()
  try {
    const outbox = createOutbox({
      db: drizzle(client),
      publisher: handlersPublisher({ handlers: {} }),
      logger: false,
    })
    await outbox.migrate()
    await fillShop(client)
    const authorize = () => ({ by: 'ana@shop.example', mayAct: true })
    const listener = createServer(toNodeListener(dashboard(outbox, { authorize })))
    listener.listen(0, '127.0.0.1')
    await once(listener, 'listening')
    const { port } = listener.address() as AddressInfo
    await mkdir(FOLDER, { recursive: true })
    for (const shot of shotsOf(await findExample(client))) {
      await take(browser, `http://127.0.0.1:${port}/outbox`, shot)
    }
    listener.closeAllConnections()
    listener.close()
  } finally {
    await browser.close()
    await client.end({ timeout: 1 })
    await server.stop()
  }
}

function shotsOf(example: string): Shot[] {
  const views = [
    ['events', '#/events?status=failed,dead_letter&savedSince=24h', 'events'],
    ['event', `#/events/${example}`, 'Waits for'],
    ['failures', '#/failures', 'All of them'],
  ] as const
  return [
    ...(['light', 'dark'] as const).flatMap((theme) =>
      (['wide', 'phone'] as const).map(
        (size): Shot => ['overview', theme, size, '', 'Open circuits'],
      ),
    ),
    ...views.flatMap(([view, where, there]): Shot[] => [
      [view, 'light', 'wide', where, there],
      [view, 'dark', 'phone', where, there],
    ]),
  ]
}

async function take(browser: Browser, url: string, shot: Shot): Promise<void> {
  const [view, colorScheme, size, where, there] = shot
  const context = await browser.newContext({
    ...SIZES[size],
    colorScheme,
    reducedMotion: 'reduce',
    timezoneId: 'Europe/Berlin',
  })
  const page = await context.newPage()
  await addHour(page)
  await page.goto(`${url}${where}`)
  await page.getByText(there).first().waitFor()
  await page.locator('.verdict-chip.verdict-trouble').waitFor()
  await page.locator('[role=status] .icon-turns, [aria-busy=true]').waitFor({ state: 'detached' })
  await page.getByText('Loading').first().waitFor({ state: 'detached' })
  const png = toPalettePng(await page.screenshot())
  await writeFile(`${FOLDER}${view}-${colorScheme}-${size}.png`, png)
  await context.close()
}

/** The server samples since its start, so the hour before is added to its first answer. */
async function addHour(page: Page): Promise<void> {
  await page.route('**/api/overview', async (route) => {
    const response = await route.fetch()
    const overview = (await response.json()) as Overview
    await route.fulfill({ response, json: { ...overview, samples: makeUpHour(overview) } })
  })
}

await main()
