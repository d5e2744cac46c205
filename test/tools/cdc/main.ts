// npm run cdc: the same rows through a connector and through the library, compared byte by byte; or, with --cost, what
// Postgres pays for an event that a connector relays, by how its row is deleted. The last line is one JSON object.
import { parseArgs } from 'node:util'
import { compareRelays, saveVaried, sendAgain } from '../../support/cdc/compared-relays.ts'
import { createCdcStack } from '../../support/cdc/stack.ts'
import { uniqueName } from '../../support/doubles/unique-name.ts'
import { closeLater, runToVerdict, say } from '../../support/run/run-to-verdict.ts'
import { requireWhole } from '../../support/run/whole-number.ts'
import { startKafka } from '../../support/servers/kafka-server.ts'
import { createTopic, readTopic } from '../../support/servers/topic-reader.ts'
import { waitUntil } from '../../support/timing/wait-until.ts'
import { measureCosts } from './cost.ts'

interface CdcArguments {
  readonly events: number
  readonly cost: boolean
}

const USAGE = 'npm run cdc -- [--events 100000] [--cost]'
const TOPICS = 3

function parseCdcArguments(args: readonly string[]): CdcArguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      events: { type: 'string', default: '100000' },
      cost: { type: 'boolean', default: false },
    },
  })
  return { events: requireWhole('events', values.events, 100, 1_000_000), cost: values.cost }
}

async function compare(events: number) {
  say('starting Kafka, Postgres and Kafka Connect')
  const kafka = await startKafka()
  closeLater(() => kafka.stop())
  const stack = await createCdcStack(kafka.brokers)
  closeLater(() => stack.stop())
  const topics = Array.from({ length: TOPICS }, () => uniqueName('cdc'))
  for (const topic of topics) await createTopic(kafka.brokers, topic)
  const readers = await Promise.all(topics.map((topic) => readTopic(kafka.brokers, topic)))
  for (const reader of readers) closeLater(() => reader.stop())
  await stack.startConnector()
  const outbox = stack.cdcOutbox()
  await outbox.start()
  const begun = performance.now()
  await saveVaried(outbox, events, topics)
  say(`${events} events are saved`)
  const arrived = () => readers.reduce((sum, { messages }) => sum + messages.length, 0)
  await waitUntil(() => arrived() >= events, {
    message: () => `${arrived()} of ${events} have arrived`,
    timeoutMs: 600_000,
  })
  const connectorSeconds = (performance.now() - begun) / 1_000
  say(`the connector has sent them, ${connectorSeconds.toFixed(1)} s after the first was saved`)
  await sendAgain(stack.sql, stack.ownOutbox({ poller: false }))
  say('the library has sent them again')
  await Promise.all(readers.map((reader) => reader.readToEnd()))
  const { pairs, unpaired, different } = compareRelays(readers)
  for (const one of different.slice(0, 3)) say(one)
  return { events, pairs, unpaired: unpaired.length, different: different.length }
}

type Costs = Awaited<ReturnType<typeof measureCosts>>
type Comparison = Awaited<ReturnType<typeof compare>>

await runToVerdict<CdcArguments, Costs | Comparison>({
  usage: USAGE,
  parse: parseCdcArguments,
  run: ({ events, cost }) => (cost ? measureCosts(events) : compare(events)),
  isGood: (result) =>
    !('pairs' in result) ||
    (result.pairs === result.events && result.unpaired + result.different === 0),
})
