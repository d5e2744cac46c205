// The test suite in docs/guides/testing.md, run as it is there: only what it imports of this package comes from the source.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { expect, it } from 'vitest'

const root = new URL('../../', import.meta.url)
const SOURCES = new Map([
  ["'aftercommit'", `'${new URL('src/index.ts', root).pathname}'`],
  ["'aftercommit/testing'", `'${new URL('src/testing/testing.ts', root).pathname}'`],
])

const guide = await readFile(new URL('docs/guides/testing.md', root), 'utf8')
const [, suite = ''] = /^```ts\n(.*?)^```/ms.exec(guide) ?? []
const file = new URL('.cache/testing-guide/suite.ts', root)
await mkdir(new URL('./', file), { recursive: true })
await writeFile(
  file,
  suite.replaceAll(/'aftercommit[^']*'/g, (name) => SOURCES.get(name) ?? name),
)
// Its tests become tests of this file.
await import(file.pathname)

it('is the suite of the guide', () => {
  expect(suite.match(/^it\(/gm)).toHaveLength(4)
})
