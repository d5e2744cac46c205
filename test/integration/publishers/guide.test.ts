// The first example of docs/guides/publishers.md is what readers copy, so it has to pass the checks that it names.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Arrival } from '../../../src/publishers/conformance.ts'
import type { Publisher } from '../../../src/publishers/publisher.ts'
import { describePublisher } from '../../support/conformance/publisher-conformance.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'

const root = new URL('../../../', import.meta.url)
const page = await readFile(new URL('docs/guides/publishers.md', root), 'utf8')
const [, example] = /^```ts\n(.*?)^```/ms.exec(page)!
const file = new URL('.cache/guide/webhook-publisher.ts', root)
await mkdir(new URL('./', file), { recursive: true })
await writeFile(file, example!)
const { webhookPublisher } = (await import(file.href)) as {
  webhookPublisher: (url: string) => Publisher
}

interface Body {
  readonly topic: string
  readonly aggregateId: string
  readonly type: string
  readonly payload: unknown
  readonly headers: Record<string, string>
}

describePublisher('the example of docs/guides/publishers.md', async () => {
  const received: (Arrival & { topic: string })[] = []
  const server = createServer(async (request, response) => {
    const {
      topic,
      aggregateId: key,
      type,
      payload,
      headers,
    }: Body = JSON.parse(await text(request))
    const isRefused = type === 'NobodyTakesThis'
    if (!isRefused) received.push({ topic, key, payload, headers })
    response.writeHead(isRefused ? 422 : 204).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    publisher: webhookPublisher(`http://127.0.0.1:${port}/`),
    openTopic: async () => uniqueName('topic'),
    arrivals: async (topic) => received.filter((one) => one.topic === topic),
    poison: (event) => ({ ...event, type: 'NobodyTakesThis' }),
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
})
