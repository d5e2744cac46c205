// The documentation keeps its word: every option, error code and lifecycle event is in its reference, and
// every snippet compiles against the source.
import { execFile } from 'node:child_process'
import { access, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { getTableConfig, type PgTable } from 'drizzle-orm/pg-core'
import { expect, it } from 'vitest'
import { githubSlug } from '../../docs/.vitepress/markdown.ts'
import { ERROR_CODES } from '../../src/index.ts'
import { inboxTable, outbox, outboxInstances, outboxPauses } from '../../src/store/schema.ts'

const root = new URL('../../', import.meta.url)
const read = (path: string) => readFile(new URL(path, root), 'utf8')
const rowsOf = (page: string) => [...page.matchAll(/^\| `([\w:-]+)`/gm)].map(([, name]) => name!)

const { paths: PATHS } = (
  JSON.parse(await read('tsconfig.json')) as {
    compilerOptions: { paths: Record<string, string[]> }
  }
).compilerOptions

it('has every error code in the reference, and no other', async () => {
  expect(rowsOf(await read('docs/reference/errors.md')).toSorted()).toEqual(ERROR_CODES.toSorted())
})

it('has every option in the reference, and no other', async () => {
  const interfaces: [string, string][] = [
    ['src/options/options.ts', 'OutboxOptions'],
    ['src/unit-of-work/unit-of-work.ts', 'UnitOfWorkOptions'],
    ...(await publisherOptions()),
    ['src/envelope/cloud-events.ts', 'CloudEventsOptions'],
    ['src/inbox/options.ts', 'InboxOptions'],
    ['src/telemetry/otel/otel.ts', 'OtelOptions'],
    ['src/telemetry/prometheus.ts', 'PrometheusOptions'],
    ['src/dashboard/options.ts', 'DashboardOptions'],
    ['src/nestjs/options.ts', 'OutboxModuleOptions'],
    ['src/nestjs/outbox-module.ts', 'OutboxModuleName'],
    ['src/nestjs/nest-handlers.ts', 'NestHandlersOptions'],
    ['src/nestjs/on-outbox-event.ts', 'OnOutboxEventOptions'],
  ]
  const fields = await Promise.all(interfaces.map(([file, name]) => fieldsOf(file, name)))
  const documented = rowsOf(await read('docs/reference/options.md'))
  expect(documented.toSorted()).toEqual(fields.flat().toSorted())
})

it('has every lifecycle event in the reference, and no other', async () => {
  const names = (await fieldsOf('src/lifecycle.ts', 'LifecycleEvents')).toSorted()
  expect(rowsOf(await read('docs/reference/events.md')).toSorted()).toEqual(names)
})

it('has every table, column and index in the reference, and no other', async () => {
  const page = await read('docs/reference/schema.md')
  const sections = page.split(/^## /m).slice(1)
  const tables = [outbox, outboxPauses, outboxInstances, inboxTable()].map(describeTable)
  const documented = sections.map((section) => ({
    name: section.split('\n')[0]!,
    columns: [...section.matchAll(/^\| `(\w+)` \| ([\w ]+) \| (yes|no) \| \S/gm)].map(
      ([, name, type, nullable]) => `${name} ${type} ${nullable}`,
    ),
    indexes: [...section.matchAll(/^\| `(\w+)` \| (`.+?`) \|/gm)].map(
      ([, name, columns]) => `${name}: ${columns!.replaceAll('`', '')}`,
    ),
  }))
  expect(documented.slice(0, tables.length)).toEqual(tables)
  expect(documented.slice(tables.length).map(({ name }) => name)).toEqual([
    'outbox_migrations, inbox_migrations',
  ])
})

it('has no dead link on GitHub, in the README and in docs/', async () => {
  const pages = await readdir(new URL('docs/', root), { recursive: true })
  const names = [
    'README.md',
    ...pages.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`),
  ]
  const dead: string[] = []
  for (const name of names) {
    const text = withoutCode(await read(name))
    for (const [, link] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(link!)) continue
      const [path, anchor] = link!.split('#')
      const target = new URL(path === '' ? name : posix.join(posix.dirname(name), path!), root)
      const isThere = await access(target).then(
        () => true,
        () => false,
      )
      if (!isThere) dead.push(`${name}: ${link}`)
      else if (anchor && !anchorsOf(await readFile(target, 'utf8')).includes(anchor)) {
        dead.push(`${name}: ${link}`)
      }
    }
  }
  expect(dead).toEqual([])
})

it('has only snippets that compile', async () => {
  const folder = new URL('.cache/snippets/', root)
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  const pages = await readdir(new URL('docs/', root), { recursive: true })
  const files = pages.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`)
  let count = 0
  for (const file of ['README.md', ...files]) {
    for (const [, snippet] of (await read(file)).matchAll(/^```ts\n(.*?)^```/gms)) {
      count += 1
      // One that begins with its file name can be imported by others of its page.
      const [, name = `${count}.ts`] = /^\/\/ (\S+\.ts)\n/.exec(snippet!) ?? []
      const path = new URL(`${file.replaceAll(/\W/g, '-')}/${name}`, folder)
      await mkdir(new URL('./', path), { recursive: true })
      await writeFile(path, `${snippet}\nexport {}\n`)
    }
  }
  expect(count).toBeGreaterThan(5)
  await writeFile(new URL('tsconfig.json', folder), JSON.stringify(SNIPPET_CONFIG))
  const tsc = fileURLToPath(new URL('node_modules/.bin/tsc', root))
  const complaints = await promisify(execFile)(tsc, ['-p', fileURLToPath(folder)]).then(
    () => '',
    ({ stdout }: { stdout: string }) => stdout,
  )
  expect(complaints).toBe('')
})

const SNIPPET_CONFIG = {
  extends: '../../tsconfig.json',
  compilerOptions: {
    // What an application of Nest has: private readonly in a constructor.
    erasableSyntaxOnly: false,
    paths: {
      ...Object.fromEntries(
        Object.entries(PATHS).map(([name, files]) => [
          name,
          files.map((file) => file.replace('./', '../../')),
        ]),
      ),
      // What prisma generate makes, as docs/guides/orms.md has it.
      '#prisma': ['../../test/support/prisma/generated/client.ts'],
      // As create-next-app has it.
      '@/lib/outbox': ['./docs-getting-started-frameworks-md/lib/outbox.ts'],
    },
  },
  include: ['**/*.ts'],
}

function withoutCode(page: string): string {
  return page.replaceAll(/^ *```.*?^ *```/gms, '').replaceAll(/`[^`\n]*`/g, '')
}

function anchorsOf(page: string): string[] {
  const text = page.replaceAll(/^ *```.*?^ *```/gms, '')
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => {
    return githubSlug(heading!.replaceAll(/\[([^\]]+)\]\([^)]*\)/g, '$1'))
  })
}

function describeTable(table: PgTable) {
  const { name, columns, indexes, primaryKeys } = getTableConfig(table)
  const ownKey = columns.filter(({ primary }) => primary)
  const keyOf = (list: readonly unknown[]) =>
    list.map((column) => (column as { name: string }).name).join(', ')
  const keys = [
    ...primaryKeys.map((key) => key.columns),
    ...(indexes.length > 0 && ownKey.length > 0 ? [ownKey] : []),
  ]
  return {
    name,
    columns: columns.map(
      (column) => `${column.name} ${column.getSQLType()} ${column.notNull ? 'no' : 'yes'}`,
    ),
    indexes: [
      ...keys.map((key) => `${name}_pkey: ${keyOf(key)}`),
      ...indexes.map(({ config }) => `${config.name}: ${keyOf(config.columns)}`),
    ],
  }
}

/** Found in the source, so that the options of a new publisher cannot be missing. */
async function publisherOptions(): Promise<[string, string][]> {
  const names = await readdir(new URL('src/publishers/', root), { recursive: true })
  const files = names.filter((name) => name.endsWith('.ts')).map((name) => `src/publishers/${name}`)
  const found = files.map(async (file) => {
    const text = await read(file)
    const interfaces = text.matchAll(/^export interface (\w+PublisherOptions)\b/gm)
    return [...interfaces].map(([, name]): [string, string] => [file, name!])
  })
  return (await Promise.all(found)).flat()
}

async function fieldsOf(file: string, name: string): Promise<string[]> {
  const [, body] = new RegExp(`interface ${name}\\b.*?\\{\\n(.*?)^\\}`, 'ms').exec(
    await read(file),
  )!
  return [...body!.matchAll(/^ {2}'?([\w:-]+?)'?\??: /gm)].map(([, field]) => field!)
}
