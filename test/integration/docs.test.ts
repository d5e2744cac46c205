// The documentation keeps its word: every option, error code and lifecycle event is in its reference, and
// every snippet compiles against the source.
import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { ERROR_CODES } from '../../src/index.ts'

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
    ['src/publishers/kafka/kafka-publisher.ts', 'KafkaPublisherOptions'],
    [
      'src/publishers/platformatic-kafka/platformatic-kafka-publisher.ts',
      'PlatformaticKafkaPublisherOptions',
    ],
    ['src/publishers/rabbitmq/rabbitmq-publisher.ts', 'RabbitmqPublisherOptions'],
    ['src/envelope/cloud-events.ts', 'CloudEventsOptions'],
    ['src/publishers/router.ts', 'RouterPublisherOptions'],
    ['src/publishers/handlers.ts', 'HandlersPublisherOptions'],
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

it('has only snippets that compile', async () => {
  const folder = new URL('.cache/snippets/', root)
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  const pages = await readdir(new URL('docs/', root), { recursive: true })
  const files = pages.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`)
  let count = 0
  for (const file of ['README.md', ...files]) {
    for (const [, snippet] of (await read(file)).matchAll(/^```ts\n(.*?)^```/gms)) {
      const name = `${file.replaceAll(/\W/g, '-')}-${(count += 1)}.ts`
      await writeFile(new URL(name, folder), `${snippet}\nexport {}\n`)
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
    },
  },
  include: ['*.ts'],
}

async function fieldsOf(file: string, name: string): Promise<string[]> {
  const [, body] = new RegExp(`interface ${name}\\b.*?\\{\\n(.*?)^\\}`, 'ms').exec(
    await read(file),
  )!
  return [...body!.matchAll(/^ {2}'?([\w:-]+?)'?\??: /gm)].map(([, field]) => field!)
}
