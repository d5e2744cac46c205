// npm run test:next: the packed tarball in a Next application, built by Next, started and asked over HTTP. Apart from the
// suite, because Next alone weighs 340 MB. Exit code 1 if an answer is not as it should be.
import { execFile, spawn } from 'node:child_process'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import postgres from 'postgres'
import { closeLater, runToVerdict, say } from '../../support/run/run-to-verdict.ts'
import { seed } from '../../support/seeded-events.ts'
import { findFreePort } from '../../support/servers/free-port.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const APP = fileURLToPath(new URL('./app/', import.meta.url))
const PACKAGES = ['next@16', 'react@19', 'react-dom@19', 'postgres@3']

/** What was answered, by what was asked. */
type Answers = Record<string, unknown>

const EXPECTED: Answers = {
  'another page of the application': true,
  'without permission': 401,
  'the overview': 200,
  'dead letters': 1,
  'from another site': 403,
  'a retry': { count: 1 },
  'a body that is none': 400,
  'the page': 200,
}

async function tryNext(): Promise<Answers> {
  const folder = await mkdtemp(join(tmpdir(), 'aftercommit-next-'))
  closeLater(() => rm(folder, { recursive: true, force: true }))
  say('packing')
  await run('npm', ['run', 'build'], { cwd: ROOT })
  const packed = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: ROOT })
  const [{ filename }] = JSON.parse(packed.stdout) as [{ filename: string }]
  say('installing Next')
  await cp(APP, folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true }))
  await run('npm', ['install', '--no-audit', '--no-fund', join(folder, filename), ...PACKAGES], {
    cwd: folder,
  })
  const server = await startPostgres()
  closeLater(() => server.stop())
  const env = { ...process.env, DATABASE_URL: server.url, NEXT_TELEMETRY_DISABLED: '1' }
  await run('./node_modules/.bin/aftercommit', ['migrate'], { cwd: folder, env })
  say('building the application')
  await run('./node_modules/.bin/next', ['build'], { cwd: folder, env })
  const port = await findFreePort()
  const child = spawn('./node_modules/.bin/next', ['start', '-p', String(port)], {
    cwd: folder,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
    detached: true,
  })
  closeLater(async () => void process.kill(-child.pid!, 'SIGKILL'))
  const origin = `http://localhost:${port}`
  await waitUntil(
    () =>
      fetch(origin).then(
        () => true,
        () => false,
      ),
    { message: 'Next answers' },
  )
  say('asking')
  return await ask(origin, server.url)
}

async function ask(origin: string, url: string): Promise<Answers> {
  const sql = postgres(url)
  closeLater(() => sql.end())
  await seed(sql, [{ status: 'dead_letter' }])
  const cookie = 'who=ada'
  const get = (path: string, headers: Record<string, string> = { cookie }) =>
    fetch(`${origin}${path}`, { headers })
  const post = (body: string, from = origin) =>
    fetch(`${origin}/admin/outbox/api/retry`, {
      method: 'POST',
      body,
      headers: { cookie, 'content-type': 'application/json', 'x-aftercommit': '1', origin: from },
    })
  const all = JSON.stringify({ selection: { all: true }, asOf: new Date().toISOString() })
  const found = await get('/admin/outbox/api/events?status=dead_letter')
  return {
    'another page of the application': (await (await get('/')).text()).includes('shop'),
    'without permission': (await get('/admin/outbox/api/overview', {})).status,
    'the overview': (await get('/admin/outbox/api/overview')).status,
    'dead letters': ((await found.json()) as { events: unknown[] }).events.length,
    'from another site': (await post(all, 'http://evil.example')).status,
    'a retry': await (await post(all)).json(),
    'a body that is none': (await post('{')).status,
    'the page': (await get('/admin/outbox')).status,
  }
}

await runToVerdict({
  usage: 'npm run test:next',
  parse: () => ({}),
  run: tryNext,
  isGood: (answers) => JSON.stringify(answers) === JSON.stringify(EXPECTED),
})
