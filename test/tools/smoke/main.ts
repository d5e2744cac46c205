// npm run test:smoke: the packed tarball, installed into an empty folder, on every supported runtime, on the oldest and the
// newest Drizzle, with every supported Nest, from CommonJS, under Jest, and compiled by the supported compilers. Exit code 1 if
// any of them failed.
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import postgres from 'postgres'
import { closeLater, runToVerdict, say } from '../../support/run/run-to-verdict.ts'
import { startPostgres } from '../../support/servers/postgres-server.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const APP = fileURLToPath(new URL('./app/', import.meta.url))

const CLIENTS = [
  'postgres@3',
  'pg@8',
  'kafkajs@2',
  'amqplib@2',
  '@opentelemetry/api@1',
  'prom-client@15',
]
const NEWEST_DRIZZLE = 'drizzle-orm@1.0.0-rc.5'
const STABLE_DRIZZLE = 'drizzle-orm@0.45'

/** Nest asks for nothing that the outbox brings, and the outbox for none of the clients above. */
const nest = (major: string) => [
  ...['common', 'core', 'platform-express', 'terminus'].map((name) => `@nestjs/${name}@${major}`),
  'reflect-metadata@0.2',
  'rxjs@7',
  'postgres@3',
]

/** What any entrance of the package imports. */
const EVERY_PEER = [
  ...CLIENTS,
  STABLE_DRIZZLE,
  ...['common', 'core'].map((name) => `@nestjs/${name}@11`),
  'reflect-metadata@0.2',
  'rxjs@7',
  'kysely@0.28',
  'knex@3',
  'typeorm@1',
  '@platformatic/kafka@1',
]
const JEST = ['postgres@3', 'jest@30']

interface Case {
  readonly name: string
  readonly packages: readonly string[]
  /** What is run in the folder: a program of its node_modules/.bin, or this very Node. */
  readonly command: readonly [program: string, ...args: string[]]
  readonly needsDatabase: boolean
}

const onRuntime = (name: string, program: string, packages: readonly string[]): Case => ({
  name,
  packages: [...CLIENTS, ...packages],
  command: [program, 'smoke.mjs'],
  needsDatabase: true,
})
const onNest = (major: string): Case => ({
  name: `Nest ${major}`,
  packages: nest(major),
  command: ['node', 'nest.mjs'],
  needsDatabase: true,
})
const compiledWithNest = (major: string): Case => ({
  name: `TypeScript with Nest ${major}`,
  packages: [...nest(major), '@types/node@20', 'typescript@5.9'],
  command: ['tsc', '-p', 'tsconfig.nest.json'],
  needsDatabase: false,
})
const fromCommonJs = (version: string): Case => ({
  name: `CommonJS on Node ${version}`,
  packages: [...EVERY_PEER, `node@${version}`],
  command: ['./node_modules/.bin/node', 'require.cjs'],
  needsDatabase: false,
})
const underJest = (
  version: string,
  config: string,
  packages: readonly string[],
  flags: readonly string[],
): Case => ({
  name: `Jest on Node ${version}`,
  packages: [...JEST, ...packages, `node@${version}`],
  command: [
    './node_modules/.bin/node',
    ...flags,
    './node_modules/jest/bin/jest.js',
    '--config',
    config,
  ],
  needsDatabase: true,
})
const compiled = (version: string): Case => ({
  name: `TypeScript ${version}`,
  packages: [...CLIENTS, '@types/pg@8', '@types/node@20', `typescript@${version}`],
  command: ['tsc', '-p', '.'],
  needsDatabase: false,
})

const CASES: readonly Case[] = [
  {
    name: 'the package alone',
    packages: [],
    command: ['node', 'imports.mjs'],
    needsDatabase: false,
  },
  onRuntime('this Node, Drizzle 0.44', 'node', ['drizzle-orm@0.44']),
  onRuntime('this Node, Drizzle 1.0', 'node', [NEWEST_DRIZZLE]),
  ...['20', '22', '24', '26'].map((version) =>
    onRuntime(`Node ${version}`, './node_modules/.bin/node', [STABLE_DRIZZLE, `node@${version}`]),
  ),
  onRuntime('Bun', './node_modules/.bin/bun', [STABLE_DRIZZLE, 'bun@1']),
  // The oldest that the package supports.
  fromCommonJs('20.19.0'),
  underJest('20.19.0', 'jest.transformed.cjs', ['@swc/core@1', '@swc/jest@0.2'], []),
  underJest('24', 'jest.plain.cjs', [], ['--experimental-vm-modules']),
  compiled('5.9'),
  compiled('7'),
  ...['11', '12'].flatMap((major) => [onNest(major), compiledWithNest(major)]),
]

/** What the tarball holds, and nothing else. */
const CONTENTS = [
  /^dist\/.+\.(?:js|d\.ts)$/,
  /^dist\/dashboard\/page\/[\w.-]+$/,
  /^drizzle\/(?:\w+\/)?\w+\.sql$/,
  /^docs\/.+\.(?:md|svg)$/,
  /^docs\/monitoring\/(?:alerts\.yml|grafana\.json)$/,
  /^(?:README\.md|CHANGELOG\.md|LICENSE|package\.json)$/,
]

const TSCONFIG = {
  compilerOptions: {
    module: 'nodenext',
    target: 'es2022',
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
    types: ['node'],
  },
  files: ['consumer.ts'],
}

// As a new Nest project has it; its declarations do not compile without skipLibCheck.
const NEST_TSCONFIG = {
  compilerOptions: {
    ...TSCONFIG.compilerOptions,
    skipLibCheck: true,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
  },
  files: ['nest-consumer.ts'],
}

async function smoke({ only }: { only: string | undefined }) {
  const cases = CASES.filter(({ name }) => only === undefined || name.includes(only))
  if (cases.length === 0) throw new Error(`no case has '${only}' in its name`)
  const folder = await mkdtemp(join(tmpdir(), 'aftercommit-smoke-'))
  closeLater(() => rm(folder, { recursive: true, force: true }))
  say('packing')
  await run('npm', ['run', 'build'], { cwd: ROOT })
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: ROOT,
  })
  const [{ filename, files }] = JSON.parse(stdout) as [
    { filename: string; files: { path: string }[] },
  ]
  const strange = files.filter(({ path }) => !CONTENTS.some((kind) => kind.test(path)))
  if (strange.length > 0) say(`in the tarball: ${strange.map(({ path }) => path).join(', ')}`)
  const server = await startPostgres()
  closeLater(() => server.stop())

  const results: Record<string, 'ok' | 'failed'> = {
    'the contents': strange.length === 0 ? 'ok' : 'failed',
  }
  const waiting = [...cases.entries()]
  // Two at a time: most of it is waiting for npm.
  const workers = Array.from({ length: 2 }, async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [n, one] = next
      const place = join(folder, String(n))
      results[one.name] = await tryCase(one, place, join(folder, filename), server.url)
    }
  })
  await Promise.all(workers)
  return results
}

async function tryCase(one: Case, folder: string, tarball: string, serverUrl: string) {
  await mkdir(folder)
  await cp(APP, folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module', private: true }))
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
  await writeFile(join(folder, 'tsconfig.nest.json'), JSON.stringify(NEST_TSCONFIG))
  const [program, ...args] = one.command
  try {
    const flags = ['install', '--no-audit', '--no-fund', '--foreground-scripts']
    await run('npm', [...flags, tarball, ...one.packages], { cwd: folder })
    const env = {
      ...process.env,
      DATABASE_URL: one.needsDatabase ? await makeDatabase(serverUrl) : '',
    }
    const found = program === 'tsc' ? './node_modules/.bin/tsc' : program
    const { stdout } = await run(found, args, { cwd: folder, env, timeout: 120_000 })
    say(`${one.name}: ${stdout.trim().replaceAll('\n', ', ') || 'ok'}`)
    return 'ok'
  } catch (error) {
    const {
      message,
      stdout = '',
      stderr = '',
    } = error as Error & { stdout?: string; stderr?: string }
    say([one.name, message, stdout, stderr].join('\n'))
    return 'failed'
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

let databases = 0

async function makeDatabase(serverUrl: string): Promise<string> {
  const name = `smoke_${(databases += 1)}`
  const client = postgres(serverUrl, { max: 1 })
  await client.unsafe(`create database ${name}`)
  await client.end()
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}

await runToVerdict({
  usage: "npm run test:smoke -- [--only <part of a case's name>]",
  parse: (args) => {
    const { values } = parseArgs({ args: [...args], options: { only: { type: 'string' } } })
    return { only: values.only }
  },
  run: smoke,
  isGood: (results) => Object.values(results).every((result) => result === 'ok'),
})
