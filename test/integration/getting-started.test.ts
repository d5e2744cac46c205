// The pages about getting started, run as they are: the first event of the first page, on a server and on PGlite, and each whole
// file of the page about database clients print what the page says, and so does a request to each server of the page about frameworks. Only addresses and imports are replaced: this package
// comes from its source.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { useFixture } from '../support/fixture.ts'
import { findFreePort } from '../support/servers/free-port.ts'

const root = new URL('../../', import.meta.url)
const folder = new URL('.cache/getting-started/', root)
const tsconfig = new URL('tsconfig.json', folder)
const fixture = useFixture()

// The decorators of Nest.
beforeAll(async () => {
  await save(
    'tsconfig.json',
    JSON.stringify({ extends: '../../tsconfig.json', include: ['**/*.ts'] }),
  )
})

const read = (page: string) => readFile(new URL(`docs/${page}.md`, root), 'utf8')
const snippetsOf = (section: string) =>
  [...section.matchAll(/^```ts\n(.*?)^```/gms)].map(([, text]) => text!)
const sectionOf = (page: string, title: string) =>
  page.split(/^## /m).find((section) => section.startsWith(`${title}\n`))!

const { exports } = JSON.parse(await readFile(new URL('package.json', root), 'utf8')) as {
  exports: Record<string, { types: string }>
}

/** The snippet with the source of this package, the client that Prisma generated for the tests, and this test's addresses. */
function adapt(snippet: string, port = 3000): string {
  // The port first, as paths and the address of the database may have such digits too.
  return snippet
    .replaceAll('3000', String(port))
    .replaceAll(/'aftercommit(\/[\w-]+)?'/g, (_, path = '') => {
      const { types } = exports[`.${path}`]!
      return `'${new URL(types.replace('./dist', 'src').replace('.d.ts', '.ts'), root).pathname}'`
    })
    .replaceAll(
      "'#prisma'",
      `'${new URL('test/support/prisma/generated/client.ts', root).pathname}'`,
    )
    .replaceAll('postgres://localhost/shop', fixture.url)
}

async function save(name: string, text: string): Promise<string> {
  const file = new URL(name, folder)
  await mkdir(new URL('./', file), { recursive: true })
  await writeFile(file, text)
  return fileURLToPath(file)
}

function run(file: string): { child: ChildProcess; output: () => string } {
  const env = {
    ...process.env,
    DATABASE_URL: fixture.url,
    TSX_TSCONFIG_PATH: fileURLToPath(tsconfig),
  }
  const child = spawn(process.execPath, ['--import', 'tsx', file], {
    cwd: fileURLToPath(root),
    env,
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text))
  return { child, output: () => output }
}

describe('the first event', async () => {
  const section = sectionOf(await read('getting-started'), 'Without a broker')
  const [snippet] = snippetsOf(section)
  const printed = `${/It prints `(.+?)`/.exec(section)![1]}\n`
  const lines = [...section.matchAll(/^\| `(.+?)` \| `(.+?)` \|$/gm)]
  const onPglite = lines.reduce((text, [, old, line]) => text.replace(old!, line!), snippet!)

  it.each([
    ['on a server', snippet!],
    ['on PGlite', onPglite],
  ])('%s prints what the page says', async (title, text) => {
    const { child, output } = run(await save(`${title}.ts`, adapt(text)))
    const [code] = await once(child, 'close')
    expect(output()).toBe(printed)
    expect(code).toBe(0)
    expect(lines).toHaveLength(4)
    for (const [, old] of lines) expect(snippet).toContain(`${old}\n`)
  })
})

describe('by database client', async () => {
  const page = await read('getting-started/databases')
  const [, printed] = /```text\n(.*?)```/s.exec(page)!
  const titles = [...page.matchAll(/^## (.+)$/gm)].map(([, title]) => title!)

  it.each(titles)('%s prints what the page says', async (title) => {
    const [snippet] = snippetsOf(sectionOf(page, title))
    const { child, output } = run(await save(`${title}.ts`, adapt(snippet!)))
    const [code] = await once(child, 'close')
    expect(output().replace(/order \d+/, 'order 1')).toBe(printed)
    expect(code).toBe(0)
  })
})

describe('by framework', async () => {
  const page = await read('getting-started/frameworks')
  const [, printed] = /```text\n(.*?)```/s.exec(page)!

  it.each(['Nest', 'Fastify', 'Hono'])('%s prints what the page says', async (title) => {
    const port = await findFreePort()
    await rm(new URL('servers/', folder), { recursive: true, force: true })
    await save('servers/outbox.ts', adapt(snippetsOf(page)[0]!))
    // Nest has two files, and the one that is run is the last.
    let file = ''
    for (const snippet of snippetsOf(sectionOf(page, title))) {
      const [, name = `${title}.ts`] = /^\/\/ (\S+\.ts)\n/.exec(snippet) ?? []
      file = await save(`servers/${name}`, adapt(snippet, port))
    }
    const { child, output } = run(file)
    const order = `http://127.0.0.1:${port}/orders/1`
    const post = () =>
      fetch(order, { method: 'POST' }).then(({ ok }) => (ok ? 'ok' : output()), output)
    await expect.poll(post, { timeout: 30_000 }).toBe('ok')
    await expect.poll(output, { timeout: 30_000 }).toContain(printed)
    child.kill('SIGTERM')
    await once(child, 'close')
    expect(output()).not.toMatch(/error/i)
  })
})
