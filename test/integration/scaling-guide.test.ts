// The arithmetic of docs/guides/scaling.md: its table is what its code returns.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { expect, it } from 'vitest'

type Estimate = Readonly<Record<string, number>>
interface Snippet {
  readonly estimate: (service: object) => Estimate
  readonly service: object
}

const root = new URL('../../', import.meta.url)
const guide = await readFile(new URL('docs/guides/scaling.md', root), 'utf8')
const [, section = ''] = /^## With your numbers\n(.*?)^## /ms.exec(guide) ?? []

async function load(): Promise<Snippet> {
  const [, snippet = ''] = /^```ts\n(.*?)^```/ms.exec(section) ?? []
  const file = new URL('.cache/scaling-guide/estimate.ts', root)
  await mkdir(new URL('./', file), { recursive: true })
  await writeFile(file, snippet)
  return (await import(file.pathname)) as Snippet
}

function readTable(): readonly (readonly number[])[] {
  const rows = section.split('\n').filter((line) => /^\| [\d,.]+ \|/.test(line))
  return rows.map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => Number(cell.replaceAll(',', ''))),
  )
}

it('has the rows that its code returns', async () => {
  const { estimate, service } = await load()
  const rows = readTable()
  expect(rows).toHaveLength(3)
  for (const [instances, eventsPerSecond, ...figures] of rows) {
    const { cores, statements, walMBs, diskGB, connections } = estimate({
      ...service,
      instances,
      eventsPerSecond,
    })
    const wanted = [cores, statements, walMBs, diskGB, connections]
    expect(figures).toEqual(wanted.map((figure) => Number(figure!.toPrecision(2))))
  }
})
