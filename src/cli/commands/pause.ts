// aftercommit pause: no instance sends to the topic, or to any, until it is resumed. Events wait, and none is lost.
import { topicName } from '../arguments.ts'
import type { AddCommand } from '../command.ts'
import { describeUser } from '../describe-user.ts'
import { isUnknownTopic } from '../../upkeep/unknown-topic.ts'
import { confirm, countEvents } from '../output/confirm.ts'
import { printable } from '../output/table.ts'
import { unknownTopicNote } from '../unknown-topic.ts'

interface Options {
  readonly reason?: string
  readonly by?: string
  readonly yes?: boolean
}

/** Unsent events are counted no further. */
const COUNTED = 100_000

export const pauseCommand: AddCommand = (program, run) => {
  program
    .command('pause')
    .description('stop sending to a topic, or to all; events wait in the table')
    .argument('[topic]', 'the topic; without it, everything', topicName)
    .option('--reason <text>', 'why; shown by status, doctor and the dashboard')
    .option('--by <name>', 'who paused it (default: user and host)')
    .option('--yes', 'do not ask')
    .action(
      run(async (context, { reason, by, yes = false }: Options, topic?: string) => {
        const { out } = context
        const session = await context.session()
        const { store } = session
        const what = topic === undefined ? 'everything' : `the topic '${printable(topic)}'`
        const isUnknown = topic !== undefined && (await isUnknownTopic(session, topic))
        if (topic === undefined && !yes) {
          const count = await store.countPending(COUNTED)
          const waiting = countEvents({ count, exact: count < COUNTED })
          await confirm(out, {
            what: `pause everything: ${waiting} unsent now, and all later events, would wait`,
            yes,
          })
        }
        const about = { by: by ?? describeUser(), reason: reason ?? null }
        const paused = await store.control.pause(topic ?? null, about)
        out.document({ topic: topic ?? null, paused }, () =>
          paused
            ? `${what} is paused; all instances obey within 15 seconds`
            : `${what} was paused already`,
        )
        if (isUnknown && !out.json) out.note(unknownTopicNote(topic))
      }),
    )
}
