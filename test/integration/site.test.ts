// The documentation as a site: it builds, no link or anchor is dead, and in a real browser every diagram is drawn, the search finds
// pages, and nothing is asked of another server.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Browser, BrowserContext } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { explainMissingChromium, launchChromium } from '../support/servers/chromium.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const site = fileURLToPath(new URL('../../.cache/site/', import.meta.url))
const missing = await explainMissingChromium()

const pages = new Map<string, string>()
let files: string[] = []

beforeAll(async () => {
  const vitepress = `${root}node_modules/vitepress/bin/vitepress.js`
  const args = [vitepress, 'build', 'docs', '--outDir', site]
  await promisify(execFile)(process.execPath, args, { cwd: root })
  files = (await readdir(site, { recursive: true })).map((file) => file.replaceAll('\\', '/'))
  for (const file of files.filter((name) => name.endsWith('.html'))) {
    pages.set(file, await readFile(`${site}${file}`, 'utf8'))
  }
}, 240_000)

it('has a page for each page of docs/', async () => {
  const sources = (await readdir(`${root}docs`, { recursive: true }))
    .filter((file) => file.endsWith('.md'))
    .map((file) => file.replace(/\.md$/, '.html').replace('README.html', 'index.html'))
  expect([...pages.keys()].toSorted()).toEqual(['404.html', ...sources].toSorted())
})

it('has no dead link and no dead anchor, and links to no file that is not there', () => {
  const dead: string[] = []
  for (const [page, html] of pages) {
    for (const [, attribute] of html.matchAll(/\s(?:href|src)="([^"]*)"/g)) {
      const link = attribute!.replaceAll('&amp;', '&')
      if (/^(?:https?:|mailto:|data:)/.test(link)) continue
      const [path, anchor] = link.split('#')
      const target = fileOf(page, path!)
      if (!files.includes(target)) dead.push(`${page}: ${link}`)
      else if (anchor && !pages.get(target)!.includes(`id="${decodeURIComponent(anchor)}"`)) {
        dead.push(`${page}: ${link}`)
      }
    }
  }
  expect(dead).toEqual([])
})

/** The file behind a link on a page, both relative to the site. */
function fileOf(page: string, path: string): string {
  if (path === '') return page
  const absolute = path.startsWith('/') ? path.slice(1) : posix.join(posix.dirname(page), path)
  if (absolute === '' || absolute.endsWith('/')) return `${absolute}index.html`
  return extname(absolute) === '' ? `${absolute}.html` : absolute
}

describe.skipIf(missing)(`in a browser${missing ? `: ${missing}` : ''}`, () => {
  let server: Server
  let browser: Browser
  let context: BrowserContext
  let origin: string
  let trouble: string[] = []

  beforeAll(async () => {
    server = createServer(async ({ url }, response) => {
      const { pathname } = new URL(url!, 'http://localhost')
      const file = fileOf('index.html', decodeURIComponent(pathname))
      const body = await readFile(`${site}${file}`).catch(() => null)
      response.writeHead(body ? 200 : 404, { 'content-type': TYPES[extname(file)] ?? 'text/plain' })
      response.end(body)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    browser = await launchChromium()
    context = await browser.newContext()
    context.on('request', (request) => {
      const url = request.url()
      if (!url.startsWith(origin) && !url.startsWith('data:')) trouble.push(`asks ${url}`)
    })
    context.on('weberror', (error) => trouble.push(String(error.error())))
    context.on('console', (message) => {
      if (message.type() === 'error') trouble.push(message.text())
    })
  })
  afterAll(async () => {
    await browser.close()
    server.closeAllConnections()
    server.close()
  })

  it('draws every diagram, in both colours', async () => {
    trouble = []
    const page = await context.newPage()
    const sources = await readdir(`${root}docs`, { recursive: true })
    let count = 0
    for (const file of sources.filter((name) => name.endsWith('.md'))) {
      const expected = [
        ...(await readFile(`${root}docs/${file}`, 'utf8')).matchAll(/^ *```mermaid$/gm),
      ].length
      if (expected === 0) continue
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        await page.goto(`${origin}/${file.replace(/\.md$/, '.html')}`)
        const drawings = page.locator('.diagram > svg')
        await expect.poll(() => drawings.count(), { timeout: 30_000 }).toBe(expected)
        const words = await drawings.evaluateAll((all) => all.map((svg) => svg.textContent ?? ''))
        expect(words.filter((text) => text.length < 20 || text.includes('Syntax error'))).toEqual(
          [],
        )
      }
      count += expected
    }
    expect(count).toBeGreaterThan(8)
    expect(trouble).toEqual([])
    await page.close()
  }, 240_000)

  it('finds pages without a server for the search', async () => {
    trouble = []
    const page = await context.newPage()
    await page.goto(`${origin}/getting-started.html`)
    // Before that, a click does nothing.
    await page.waitForFunction(`document.querySelector('#app')?.__vue_app__ !== undefined`)
    await page.locator('.VPNavBarSearch button').click()
    await page.locator('#localsearch-input').fill('dead letter retry')
    const results = page.locator('.VPLocalSearchBox .result')
    await expect.poll(() => results.count(), { timeout: 30_000 }).toBeGreaterThan(2)
    expect(await page.locator('.VPLocalSearchBox .results').textContent()).toContain('Dead letters')
    expect(trouble).toEqual([])
    await page.close()
  })
})

const TYPES: Record<string, string> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
}
