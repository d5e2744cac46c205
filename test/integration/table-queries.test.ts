// The SQL that the documentation shows for reading the table: each query can use an index, or it would read the whole history.
import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { useFixture } from '../support/fixture.ts'

const fixture = useFixture({ partitioned: false })

async function sectionOf(path: string, heading: string): Promise<string> {
  const page = await readFile(new URL(`../../docs/${path}`, import.meta.url), 'utf8')
  return page.split(`## ${heading}\n`)[1]!.split(/^## /m)[0]!
}

const sections = [
  await sectionOf('operations.md', 'Reading the table'),
  await sectionOf('guides/routing.md', 'Removing a route'),
]
const found = [...sections.join('\n').matchAll(/`([^`]*\bstatus (?:=|in) [^`]*)`/g)]
const queries = found.map(([, code]) =>
  code!.startsWith('select') ? code! : `select * from outbox where ${code}`,
)

it.each(queries)('%s', async (query) => {
  const { sql } = fixture
  const plan = await sql.begin(async (tx) => {
    await tx`set local enable_seqscan = off`
    return await tx.unsafe(
      `explain ${query.replace('...', '0198c2f3-1f2a-7c41-9a55-0c6e1c9f2a77')}`,
    )
  })
  const text = plan.map((row) => row['QUERY PLAN'] as string).join('\n')
  expect(text).toMatch(/on outbox_(due|lane|failed|dead|scheduled)_idx|using outbox_\w+_idx/)
  expect(text).not.toContain('Seq Scan')
})

it('finds those of waiting, scheduled, failed, dead and late events, of a lane and of a topic', () => {
  expect(queries).toHaveLength(7)
})
