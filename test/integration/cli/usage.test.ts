// How the command is called: what it says to wrong input, where its database comes from, and what it never prints.
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createProgram } from '../../../src/cli/program.ts'
import { buildPackage, readCli, runCli } from '../../support/built-cli.ts'
import { useFixture } from '../../support/fixture.ts'

const fixture = useFixture({ partitioned: false })
const ID = '019c0f5e-7b4a-7000-8000-000000000000'
const root = fileURLToPath(new URL('../../../', import.meta.url))
/** Inside the package, so that `aftercommit` means this one. */
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(await buildPackage(), 'config-'))
})
afterAll(() => rm(folder, { recursive: true }))

it('prints help and the version', async () => {
  const help = await runCli(['--help'])
  expect(help).toMatchObject({ code: 0, stderr: '' })
  expect(help.stdout).toContain('doctor')
  expect((await runCli(['retry', '--help'])).stdout).toContain('--database-url <url>')
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    version: string
  }
  expect(await runCli(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n` })
  expect(await runCli([])).toMatchObject({ code: 2, stdout: '' })
})

/** What is wrong with each, and what the message says. */
const WRONG: [args: string[], says: string][] = [
  [['grants'], "missing required argument 'role'"],
  [['grants', ''], 'Expected the name of a role'],
  [['grants', 'shop', '--for', 'everything'], 'Allowed choices are service, application'],
  [['statsu'], 'Did you mean status?'],
  [['migrate', '--partitionned'], 'Did you mean --partitioned?'],
  [['migrate', 'now'], 'too many arguments'],
  [['status', '--max-pending', 'many'], 'whole number'],
  [['status', '--max-lag', '5'], 'duration'],
  [
    ['list', '--status', 'dead'],
    'Allowed choices are scheduled, pending, failed, published, dead_letter',
  ],
  [['list', '--limit', '0'], 'from 1 to 1000'],
  [['list', '--since', 'yesterday'], '2h'],
  [['list', '--after', 'x'], 'UUID'],
  [['show'], "missing required argument 'id'"],
  [['show', 'order-1'], 'UUID'],
  [['tail', '--interval', '1ms'], 'at least 100ms'],
  [['tail', '--lines', '-1'], 'whole number'],
  [['groups', '--limit', '1001'], 'from 1 to 1000'],
  [['retry'], '--all'],
  [['retry', '--all', '--type', 'OrderPlaced'], '--all'],
  [['retry', 'order-1'], 'UUID'],
  [['discard'], '--all'],
  [['discard', ID, '--all'], '--all'],
  [['pause', 'orders', 'carts'], 'too many arguments'],
  [['pause', ''], 'the name of a topic'],
  [['resume', ''], 'the name of a topic'],
  [['pause', '--raeson', 'x'], 'Did you mean --reason?'],
  [['resume', 'orders', 'carts'], 'too many arguments'],
  [['reroute', 'ordres'], "missing required argument 'to'"],
  [['reroute', 'ordres', ''], 'the name of a topic'],
  [['reroute', 'orders', 'orders'], "both are 'orders'"],
  [['cdc-config', '--sql', '--user', ''], 'user must be a non-empty string'],
  [['cdc-config', '--hots', 'db.internal'], 'Did you mean --host?'],
  [['cdc-config', 'orders'], 'too many arguments'],
  [['instances', '--all'], 'unknown option'],
  [['purge'], '--older-than'],
  [['purge', '--older-than', '7'], 'duration'],
  [['purge', '--older-than', '10ms', '--dry-run'], 'did you mean days'],
  [['doctor', '--old-transaction', 'x'], 'duration'],
  [['relay'], 'aftercommit.config.ts'],
  [['status', '--table', 'a.b'], 'without a dot'],
]

it.each(WRONG)('refuses %j and names the remedy', async (args, says) => {
  const { code, stdout, stderr } = await runCli(args, { url: fixture.url })
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(says)
  expect(stderr).toMatch(/^error: /)
})

it('says what is wrong as JSON to those who asked for JSON', async () => {
  const { code, stderr } = await runCli(['retry', '--json'], { url: fixture.url })
  expect(code).toBe(2)
  expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'USAGE' } })
  const { stderr: unparsed } = await runCli(['retry', '--json', '--nwo'])
  expect(JSON.parse(unparsed)).toMatchObject({ error: { code: 'USAGE' } })
})

describe('the database', () => {
  const SECRET = 'hunter2secret'

  it('is asked for, and never guessed', async () => {
    const { code, stderr } = await runCli(['status'])
    expect(code).toBe(2)
    expect(stderr).toContain('set DATABASE_URL, pass --database-url')
  })

  it.each([
    [
      'that is none',
      `mysql://u:${SECRET}@localhost/x`,
      2,
      'must begin with "postgres://" or "postgresql://", followed by user:password',
    ],
    ['without a server', `postgres://u:${SECRET}@127.0.0.1:1/x`, 1, '127.0.0.1:1 (ECONNREFUSED)'],
    ['with an unknown host', `postgres://u:${SECRET}@no.such.host.invalid/x`, 1, 'cannot reach'],
  ])('is explained without its password: one %s', async (_, url, code, says) => {
    for (const given of [
      { args: ['status'], url },
      { args: ['status', '--database-url', url], url: 'postgres://127.0.0.1:1/other' },
    ]) {
      const run = await runCli(given.args, { url: given.url })
      expect(run.code).toBe(code)
      expect(run.stderr).toContain(says)
      expect(run.stdout + run.stderr).not.toContain(SECRET)
    }
  })

  it('is explained where it does not exist, or has no table', async () => {
    const missing = new URL(fixture.url)
    missing.pathname = '/no-such-database'
    const { code, stderr } = await runCli(['list'], { url: missing.href })
    expect(code).toBe(1)
    expect(stderr).toContain('check the name at the end of the database URL')
    const noTable = await runCli(['list', '--table', 'nope'], { url: fixture.url })
    expect(noTable.code).toBe(1)
    expect(noTable.stderr).toContain('run aftercommit migrate')
  })

  it('keeps a misspelt option from printing the connection string', async () => {
    const { code, stderr } = await runCli([`--databse-url=postgres://u:${SECRET}@h/x`, 'status'])
    expect(code).toBe(2)
    expect(stderr).toContain('--databse-url')
    expect(stderr).not.toContain(SECRET)
  })

  it('needs a client, and takes either', async () => {
    const built = await buildPackage()
    // Far from the project, whose packages must not be found.
    const far = await mkdtemp(join(tmpdir(), 'aftercommit-alone-'))
    const link = (name: string) =>
      symlink(join(root, 'node_modules', name), join(far, 'node_modules', name))
    try {
      await cp(built, join(far, 'package'), { recursive: true })
      await mkdir(join(far, 'node_modules'))
      const { dependencies } = JSON.parse(await readFile(join(built, 'package.json'), 'utf8')) as {
        dependencies: Record<string, string>
      }
      await Promise.all(Object.keys(dependencies).map(link))
      const surroundings = { url: fixture.url, folder: join(far, 'package'), cwd: far }
      const without = await runCli(['status'], surroundings)
      expect(without.code).toBe(2)
      expect(without.stderr).toContain("neither 'postgres' nor 'pg' is installed")
      for (const client of ['pg', 'postgres']) {
        await link(client)
        expect(await readCli(['status'], surroundings)).toMatchObject({ ok: true })
        await rm(join(far, 'node_modules', client))
      }
    } finally {
      await rm(far, { recursive: true })
    }
  })
})

describe('the config file', () => {
  const write = async (name: string, text: string) => {
    for (const old of await readdir(folder)) await rm(join(folder, old))
    await writeFile(join(folder, name), text)
    return folder
  }

  it('names the database and the table, and gives way to the variable and the options', async () => {
    await fixture.store({ schema: 'configured', table: 'events' }).migrate()
    const names = { databaseUrl: fixture.url, schema: 'configured', table: 'events' }
    const text = `import { defineConfig } from 'aftercommit/config'
      export default defineConfig(${JSON.stringify(names)})`
    const cwd = await write('aftercommit.config.mjs', text)
    expect(await readCli(['status'], { cwd })).toMatchObject({ ok: true })
    await fixture.sql`drop table configured.events`
    expect(await runCli(['status'], { cwd })).toMatchObject({ code: 1 })
    const own = ['--schema', 'public', '--table', 'outbox']
    expect(await readCli(['status', ...own], { cwd })).toMatchObject({ ok: true })
    const elsewhere = { cwd, url: 'postgres://127.0.0.1:1/x' }
    expect((await runCli(['status', ...own], elsewhere)).stderr).toContain('127.0.0.1:1')
    const byOption = ['--database-url', fixture.url]
    expect(await readCli(['status', ...own, ...byOption], elsewhere)).toMatchObject({ ok: true })
    expect(await runCli(['status', '--no-config'], { cwd })).toMatchObject({ code: 2 })
  })

  it('is found by its path', async () => {
    const path = join(
      await write('other.mjs', `export default { databaseUrl: '${fixture.url}' }`),
      'other.mjs',
    )
    expect(await readCli(['status', '--config', path], {})).toMatchObject({ ok: true })
    const missing = await runCli(['status', '--config', 'missing.mjs'])
    expect(missing).toMatchObject({ code: 2 })
    expect(missing.stderr).toContain('check --config')
  })

  it.each([
    ['an unknown field', 'export default { databseUrl: "" }', 2, "did you mean 'databaseUrl'?"],
    ['no default export', 'export const config = {}', 2, 'export default defineConfig'],
    ['an outbox that is none', 'export default { outbox: 1 }', 2, 'a function'],
    ['an error', 'throw new Error("no vault")', 1, 'no vault'],
  ])('is refused with %s', async (_, text, code, says) => {
    const cwd = await write('aftercommit.config.js', text)
    const run = await runCli(['status'], { cwd, url: fixture.url })
    expect(run.code).toBe(code)
    expect(run.stderr).toContain(says)
  })

  it('may be TypeScript where the runtime loads it, and says what to do where it does not', async () => {
    const text = `const databaseUrl: string = '${fixture.url}'; export default { databaseUrl }`
    const cwd = await write('aftercommit.config.ts', text)
    const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
    const loads = major > 22 || (major === 22 && minor >= 18)
    const run = await runCli(['status'], { cwd })
    expect(run.code).toBe(loads ? 0 : 2)
    expect(run.stderr).toContain(loads ? '' : 'write aftercommit.config.mjs instead')
    const withLoader = { cwd, env: { NODE_OPTIONS: '--import tsx' } }
    expect(await readCli(['status'], withLoader)).toMatchObject({ ok: true })
  })
})

it('has every command and every option in the reference, and no other', async () => {
  const page = await readFile(join(root, 'docs/reference/cli.md'), 'utf8')
  const sections = new Map(
    page.split(/^## /m).map((text) => [text.slice(0, text.indexOf('\n')), text] as const),
  )
  const streams = { stdin: process.stdin, stdout: process.stdout, stderr: process.stderr }
  const program = createProgram('1.0.0', () => async () => {}, streams)
  const flagsOf = (command: Command) => command.options.map(({ flags }) => flags).toSorted()
  const documented = (section: string) =>
    [...(sections.get(section) ?? '').matchAll(/^\| `(--[^`]+)`/gm)]
      .map(([, flag]) => flag!)
      .toSorted()
  for (const command of program.commands) {
    expect([command.name(), ...documented(command.name())]).toEqual([
      command.name(),
      ...flagsOf(command),
    ])
    expect(page).toContain(`| [\`${command.name()}\`](#${command.name()}) |`)
  }
  expect(documented('Options of every command')).toEqual([...flagsOf(program), '--help'].toSorted())
  const listed = [...page.matchAll(/^\| \[`([\w-]+)`\]/gm)].map(([, name]) => name)
  expect(listed).toEqual(program.commands.map((command) => command.name()))
})
