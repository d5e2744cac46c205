// The names that we copied are those of the semantic conventions, in the version that we say, and none of them is
// deprecated there.
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { suppressTracing, isTracingSuppressed } from '@opentelemetry/core'
import { context, createContextKey, ROOT_CONTEXT } from '@opentelemetry/api'
import { expect, it } from 'vitest'
import {
  ATTRIBUTES,
  CONVENTIONS_VERSION,
  METRIC_NAMES,
  OPERATIONS,
} from '../../../src/telemetry/otel/names.ts'

const require = createRequire(import.meta.url)
const entry = require.resolve('@opentelemetry/semantic-conventions/incubating')
const folder = new URL(`file://${entry.slice(0, entry.lastIndexOf('/') + 1)}`)

/** Every name that the package declares, and whether it is deprecated. */
async function declared(): Promise<Map<string, boolean>> {
  const files = ['stable', 'experimental'].flatMap((part) =>
    ['attributes', 'metrics'].map((kind) => `${part}_${kind}.d.mts`),
  )
  const names = new Map<string, boolean>()
  for (const file of files) {
    const text = await readFile(new URL(file, folder), 'utf8')
    const pattern = /(\/\*\*(?:(?!\*\/)[^])*\*\/)\s*declare const [A-Z\d_]+: "([^"]+)"/g
    for (const [, comment, name] of text.matchAll(pattern)) {
      names.set(`${file.includes('metrics') ? 'metric ' : ''}${name}`, /@deprecated/.test(comment!))
    }
  }
  return names
}

it('uses only names that the conventions have and do not deprecate', async () => {
  const names = await declared()
  const used = [
    ...Object.values(ATTRIBUTES),
    ...Object.values(METRIC_NAMES).map((name) => `metric ${name}`),
  ]
  expect(used.filter((name) => names.get(name) !== false)).toEqual([])
  // The test can tell.
  expect(names.get('messaging.system')).toBe(true)
  expect(names.get('messaging.kafka.offset')).toBe(true)
  expect(names.get('messaging.nonsense')).toBeUndefined()
})

it('uses the values that the conventions have for operations', async () => {
  const incubating = (await import('@opentelemetry/semantic-conventions/incubating')) as Record<
    string,
    unknown
  >
  for (const value of Object.values(OPERATIONS)) {
    expect(incubating[`MESSAGING_OPERATION_TYPE_VALUE_${value.toUpperCase()}`]).toBe(value)
  }
})

it('follows the version of the conventions that the package has', async () => {
  const manifest = await readFile(new URL('../package.json', folder), 'utf8')
  expect((JSON.parse(manifest) as { version: string }).version).toBe(CONVENTIONS_VERSION)
})

it('silences tracing by the key that SDKs look for', () => {
  const key = createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING')
  expect(isTracingSuppressed(ROOT_CONTEXT.setValue(key, true))).toBe(true)
  expect(suppressTracing(context.active()).getValue(key)).toBe(true)
})
