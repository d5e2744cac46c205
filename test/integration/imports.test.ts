// The library asks for no package that its user may not have: what each entry reaches, by value or by type, is
// looked up in the source, import by import.
import { readdir, readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'

const root = new URL('../../', import.meta.url)
/** Installed along with the library. */
const OWN = new Set(['croner', 'eventemitter3', 'leven', 'uuid'])
const read = async (name: string) => JSON.parse(await readFile(new URL(name, root), 'utf8'))
const IMPORT = /^(?:import|export|\}).* from '([^']+)'|^import '([^']+)'|\bimport\('([^']+)'\)/gm

async function packagesOf(entry: string): Promise<string[]> {
  const packages = new Set<string>()
  const seen = new Set<string>()
  const waiting = [new URL(entry, root)]
  for (let file = waiting.pop(); file; file = waiting.pop()) {
    if (seen.has(file.href)) continue
    seen.add(file.href)
    const text = await readFile(file, 'utf8')
    for (const [, ...names] of text.matchAll(IMPORT)) {
      const name = names.find((one) => one !== undefined)!
      if (name.startsWith('.')) waiting.push(new URL(name, file))
      else if (!name.startsWith('node:') && !OWN.has(name)) packages.add(name)
    }
  }
  return [...packages].toSorted()
}

/** Each entry of the package and its command, with the packages that it asks for. */
const ENTRIES: readonly (readonly [string, readonly string[]])[] = [
  ['src/index.ts', []],
  ['src/drivers/postgres-js.ts', ['postgres']],
  ['src/drivers/node-postgres.ts', ['pg']],
  ['src/drivers/kysely.ts', ['kysely']],
  ['src/drivers/knex.ts', ['knex']],
  ['src/drivers/typeorm.ts', ['typeorm']],
  ['src/drivers/prisma.ts', []],
  ['src/drivers/conformance.ts', []],
  ['src/publishers/handlers.ts', []],
  ['src/publishers/conformance.ts', []],
  ['src/publishers/debezium/cdc.ts', []],
  ['src/publishers/kafka/kafka-publisher.ts', ['kafkajs']],
  ['src/publishers/platformatic-kafka/platformatic-kafka-publisher.ts', ['@platformatic/kafka']],
  ['src/publishers/rabbitmq/rabbitmq-publisher.ts', ['amqplib']],
  ['src/inbox/inbox.ts', []],
  ['src/telemetry/otel/otel.ts', ['@opentelemetry/api']],
  ['src/telemetry/prometheus.ts', ['prom-client']],
  ['src/dashboard/dashboard.ts', []],
  ['src/cli/config.ts', []],
  ['src/testing/testing.ts', []],
  ['src/nestjs/nestjs.ts', ['@nestjs/common', '@nestjs/core']],
  ['src/cli/main.ts', ['commander', 'console-table-printer', 'pg', 'postgres']],
  ['src/store/schema.ts', ['drizzle-orm', 'drizzle-orm/pg-core']],
]

it.each(ENTRIES)('%s asks for nothing but %j', async (entry, packages) => {
  expect(await packagesOf(entry)).toEqual(packages)
})

it('knows every subpath of the package here and in tsconfig.json', async () => {
  const { name, exports } = (await read('package.json')) as Package
  const files = Object.entries(exports).flatMap(([subpath, entry]) => {
    if (typeof entry === 'string') return []
    const source = entry.default.replace('./dist/', './src/').replace(/\.js$/, '.ts')
    return [[name + subpath.slice(1), source] as const]
  })
  const { paths } = ((await read('tsconfig.json')) as Config).compilerOptions
  expect(paths).toEqual(Object.fromEntries(files.map(([subpath, file]) => [subpath, [file]])))
  const sources = files.map(([, file]) => file.slice(2))
  expect(ENTRIES.map(([file]) => file).toSorted()).toEqual(
    [...sources, 'src/cli/main.ts'].toSorted(),
  )
})

it('has a subpath for every publisher', async () => {
  const files = await readdir(new URL('src/publishers/', root), { recursive: true })
  const publishers = files.filter((name) => name.endsWith('-publisher.ts')).concat('handlers.ts')
  expect(publishers.length).toBeGreaterThan(3)
  const { exports } = (await read('package.json')) as Package
  const sources = new Set(
    Object.values(exports).map((entry) => (typeof entry === 'string' ? entry : entry.default)),
  )
  const hidden = publishers.filter((name) => {
    return !sources.has(`./dist/publishers/${name.replace(/\.ts$/, '.js')}`)
  })
  expect(hidden).toEqual([])
})

it('declares every package that an entry asks for as an optional peer, or as a dependency', async () => {
  const { dependencies, peerDependencies, peerDependenciesMeta } = (await read(
    'package.json',
  )) as Package
  const names = ENTRIES.flatMap(([, packages]) => packages.map(packageOf))
  const undeclared = names.filter((name) => {
    const isOptionalPeer = name in peerDependencies && peerDependenciesMeta[name]?.optional === true
    return !isOptionalPeer && !(name in dependencies)
  })
  expect([...new Set(undeclared)]).toEqual([])
})

/** The package of what an import names: drizzle-orm of drizzle-orm/pg-core. */
function packageOf(name: string): string {
  return name
    .split('/')
    .slice(0, name.startsWith('@') ? 2 : 1)
    .join('/')
}

interface Package {
  readonly name: string
  readonly exports: Record<string, string | { readonly default: string }>
  readonly dependencies: Record<string, string>
  readonly peerDependencies: Record<string, string>
  readonly peerDependenciesMeta: Record<string, { readonly optional?: boolean }>
}

interface Config {
  readonly compilerOptions: { readonly paths: Record<string, string[]> }
}
