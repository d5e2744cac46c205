// The files of the page: from one folder, and nothing else.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { PageFiles } from '../../../src/dashboard/page-files.ts'

let folder: string
let files: PageFiles

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'aftercommit-page-'))
  await mkdir(join(folder, 'page'))
  const page = '<meta name="base" content="__BASE__"><script src="__BASE__/page.js">'
  await writeFile(join(folder, 'page/index.html'), page)
  await writeFile(join(folder, 'page/page.js'), 'show("__BASE__")')
  await writeFile(join(folder, 'page/page.js.map'), '{}')
  await writeFile(join(folder, 'secret.js'), 'secret')
  files = new PageFiles('/admin/outbox', pathToFileURL(join(folder, 'page/')))
})
afterAll(() => rm(folder, { recursive: true }))

const ask = (name: string, init: RequestInit = {}) =>
  files.serve(name, new Request('http://shop.example/', init))

it('serves the page for each of its views, with its base path', async () => {
  for (const name of ['', 'events', 'events/01900000-0000-7000-8000-000000000001']) {
    const response = await ask(name)
    expect(await response.text()).toBe(
      '<meta name="base" content="/admin/outbox"><script src="/admin/outbox/page.js">',
    )
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(response.headers.get('content-security-policy')).toContain("script-src 'self'")
  }
})

it('serves a script as it is, gzipped if the browser takes that, and once', async () => {
  const plain = await ask('page.js')
  expect(await plain.text()).toBe('show("__BASE__")')
  expect(plain.headers.get('content-type')).toMatch(/^text\/javascript/)
  const packed = await ask('page.js', { headers: { 'accept-encoding': 'br, gzip' } })
  expect(packed.headers.get('content-encoding')).toBe('gzip')
  expect(gunzipSync(await packed.arrayBuffer()).toString()).toBe('show("__BASE__")')
  const etag = plain.headers.get('etag')!
  const again = await ask('page.js', { headers: { 'if-none-match': etag } })
  expect([again.status, await again.text()]).toEqual([304, ''])
  const changed = await ask('page.js', { headers: { 'if-none-match': '"other"' } })
  expect(changed.status).toBe(200)
})

it('answers HEAD without a body', async () => {
  const response = await ask('page.js', { method: 'HEAD' })
  expect([response.status, await response.text()]).toEqual([200, ''])
})

it.each([
  'secret.js',
  '../secret.js',
  '..%2fsecret.js',
  'page.js.map',
  'nothing.css',
  '/etc/passwd.js',
])('has no %s', async (name) => {
  await expect(ask(name)).rejects.toMatchObject({ status: 404, code: 'NOT_FOUND' })
})

it('takes no POST', async () => {
  await expect(ask('', { method: 'POST' })).rejects.toMatchObject({ status: 405 })
})

it('says that the files are missing, and finds them when they are there', async () => {
  const late = new PageFiles('', pathToFileURL(join(folder, 'later/')))
  const page = new Request('http://shop.example/')
  await expect(late.serve('', page)).rejects.toMatchObject({ status: 404, code: 'PAGE_MISSING' })
  await mkdir(join(folder, 'later'))
  await writeFile(join(folder, 'later/index.html'), 'here')
  expect(await (await late.serve('', page)).text()).toBe('here')
})
