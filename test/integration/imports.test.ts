// The library asks for no package that its user may not have: what each entry reaches, by value or by type, is
// looked up in the source, import by import.
import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'

const root = new URL('../../', import.meta.url)
/** Installed along with the library. */
const OWN = new Set(['croner', 'eventemitter3', 'leven', 'uuid'])
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

it.each([
  ['src/index.ts', []],
  ['src/drivers/postgres-js.ts', ['postgres']],
  ['src/drivers/node-postgres.ts', ['pg']],
  ['src/drivers/kysely.ts', ['kysely']],
  ['src/drivers/knex.ts', ['knex']],
  ['src/drivers/typeorm.ts', ['typeorm']],
  ['src/drivers/prisma.ts', []],
  ['src/drivers/conformance.ts', []],
  ['src/publishers/handlers.ts', []],
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
])('%s asks for nothing but %j', async (entry, packages) => {
  expect(await packagesOf(entry)).toEqual(packages)
})
