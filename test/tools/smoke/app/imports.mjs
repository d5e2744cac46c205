// With nothing installed but the package: each subpath loads, or asks for its own client and no other.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'

/** Those that import their client; the others are handed one. */
const OWN = {
  './schema': 'drizzle-orm',
  './kysely': 'kysely',
  './platformatic-kafka': '@platformatic/kafka',
  './rabbitmq': 'amqplib',
  './otel': '@opentelemetry/api',
  './prometheus': 'prom-client',
  './nestjs': '@nestjs/(?:common|core)',
}
const manifest = await readFile('node_modules/aftercommit/package.json', 'utf8')
const loaded = []
for (const [subpath, entry] of Object.entries(JSON.parse(manifest).exports)) {
  if (typeof entry === 'string') continue
  const failure = await import(`aftercommit${subpath.slice(1)}`).then(
    () => null,
    (error) => error,
  )
  if (failure) {
    assert.equal(failure.code, 'ERR_MODULE_NOT_FOUND', `${subpath}: ${failure.message}`)
    assert.match(failure.message, new RegExp(`package '${OWN[subpath] ?? 'nothing'}'`), subpath)
  } else loaded.push(subpath)
}
assert.deepEqual(
  loaded.filter((subpath) => subpath in OWN),
  [],
)
console.log(`ok ${loaded.length} subpaths without any client`)
