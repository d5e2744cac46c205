// aftercommit reroute: moves the events that wait for a topic to another one, such as after a typing error.
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { reroute, type RerouteParts, type RerouteResult } from '../../upkeep/reroute.ts'
import { waitsFor } from '../../upkeep/seen-instances.ts'
import { isUnknownTopic } from '../../upkeep/unknown-topic.ts'
import { topicName } from '../arguments.ts'
import { usageError } from '../cli-error.ts'
import type { AddCommand } from '../command.ts'
import { confirm, countEvents } from '../output/confirm.ts'
import { printable } from '../output/table.ts'
import { silentParts } from '../silent-parts.ts'
import { lookAround } from './event-row.ts'
import { OF_UNKNOWN, unknownTopicNote } from '../unknown-topic.ts'

interface Options {
  readonly yes?: boolean
}

/** Unsent events are counted no further. */
const COUNTED = 100_000

/** An instance that probes the topic holds an event for the length of a send, so what is held is tried again. */
const PATIENCE_MS = 3_000
const BETWEEN_TRIES_MS = 250

export const rerouteCommand: AddCommand = (program, run) => {
  program
    .command('reroute')
    .alias('move')
    .description('move unsent events from one topic to another')
    .argument('<from>', 'the topic that they wait for', topicName)
    .argument('<to>', 'the topic that they go to instead', topicName)
    .option('--yes', 'do not ask')
    .action(
      run(async (context, { yes = false }: Options, from: string, to: string) => {
        const { out } = context
        if (from === to) throw usageError(`name two topics: both are '${from}'`)
        const session = await context.session()
        const { store, preview } = session
        const count = await preview.countWaiting(from, COUNTED)
        const isUnknown = count.count > 0 && (await isUnknownTopic(session, to))
        const what = `move ${countEvents(count)} from the topic '${from}' to '${to}'${isUnknown ? OF_UNKNOWN : ''}`
        if (count.count > 0) await confirm(out, { what, yes })
        const result = await rerouteAll(silentParts(store), from, to)
        out.document(result, () => `${result.moved} moved`)
        if (out.json) return
        if (isUnknown && yes) out.note(unknownTopicNote(to))
        if (result.held > 0) {
          const one = 'one event was left, because an instance holds it'
          const many = `${result.held} events were left, because instances hold them`
          out.note(`${result.held === 1 ? one : many}; run the command again in a minute`)
        } else if (result.moved === 0) out.note('nothing matched')
        else if (waitsFor(from, (await lookAround(session)).running) === 'topic') {
          out.note(
            `instances still report '${printable(from)}' as out of reach; nothing waits for it any more, so this clears within a minute`,
          )
        }
      }),
    )
}

async function rerouteAll(parts: RerouteParts, from: string, to: string): Promise<RerouteResult> {
  const until = performance.now() + PATIENCE_MS
  let moved = 0
  for (;;) {
    const result = await reroute(parts, from, to, {})
    moved += result.moved
    if (result.held === 0 || performance.now() > until) return { moved, held: result.held }
    await delay(BETWEEN_TRIES_MS)
  }
}
