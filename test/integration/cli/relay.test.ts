// `aftercommit relay`: a process that only runs the fallback, until it is told to end.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { buildPackage, runCli, startCli } from '../../support/built-cli.ts'
import { useFixture } from '../../support/fixture.ts'
import { seed } from '../../support/seeded-events.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'

const fixture = useFixture({ partitioned: false })
let cwd: string

beforeAll(async () => {
  cwd = await mkdtemp(join(await buildPackage(), 'relay-'))
})
afterAll(() => rm(cwd, { recursive: true }))

const writeConfig = (outbox: string) =>
  writeFile(
    join(cwd, 'aftercommit.config.mjs'),
    `import { createOutbox } from 'aftercommit'
     import { defineConfig } from 'aftercommit/config'
     import { handlersPublisher } from 'aftercommit/handlers'
     import { postgresJs } from 'aftercommit/postgres-js'
     import postgres from 'postgres'
     const publisher = handlersPublisher({ handlers: { OrderPlaced: () => {} } })
     export default defineConfig({ outbox: ${outbox} })`,
  )
const working = `(relay) => createOutbox({
  db: postgresJs(postgres(process.env.DATABASE_URL)), publisher, poller: false, pollInterval: '50ms', ...relay })`

it.each(['SIGTERM', 'SIGINT'] as const)(
  'delivers what is left until %s, and ends well',
  async (signal) => {
    await writeConfig(working)
    const relay = await startCli(['relay', '--json'], { cwd, url: fixture.url })
    await relay.printed('relay started')
    await seed(fixture.sql, [{ payload: 'secret-payload' }, {}])
    await waitUntil(
      async () => (await fixture.rows()).every(({ status }) => status === 'published'),
      { message: 'both are published' },
    )
    relay.signal(signal)
    const { code, stdout, stderr } = await relay.ended
    expect(code).toBe(0)
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { message: string })
    const messages = lines.map(({ message }) => message)
    expect(messages).toContain('outbox started')
    expect(messages.slice(-3)).toEqual(['relay stopping', 'outbox stopped', 'relay stopped'])
    expect(stdout + stderr).not.toContain('secret-payload')
  },
)

it('logs for people too', async () => {
  await writeConfig(working)
  const relay = await startCli(['relay'], { cwd, url: fixture.url })
  await relay.printed('relay started')
  relay.signal('SIGTERM')
  const { code, stdout } = await relay.ended
  expect(code).toBe(0)
  expect(stdout).toMatch(/^20\d\d-.*Z info {2}relay stopping \{"signal":"SIGTERM"\}$/m)
})

it('fails if the outbox cannot start, and says why', async () => {
  const elsewhere = working.replace('publisher,', "publisher, table: 'nope',")
  await writeConfig(elsewhere)
  const { code, stderr } = await runCli(['relay'], { cwd, url: fixture.url })
  expect(code).toBe(1)
  expect(stderr).toContain('run aftercommit migrate')
})

it('refuses a config whose outbox is none', async () => {
  await writeConfig('() => ({})')
  const { code, stderr } = await runCli(['relay'], { cwd, url: fixture.url })
  expect(code).toBe(2)
  expect(stderr).toContain('what createOutbox() returns')
})
