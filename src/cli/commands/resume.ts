// aftercommit resume: ends the pause of a topic, or of everything. Topics that were paused by name stay paused.
import { topicName } from '../arguments.ts'
import type { AddCommand } from '../command.ts'
import { printable } from '../output/table.ts'

export const resumeCommand: AddCommand = (program, run) => {
  program
    .command('resume')
    .description('end the pause of a topic, or of everything')
    .argument('[topic]', 'the topic; without it, everything', topicName)
    .action(
      run(async (context, _, topic?: string) => {
        const { out } = context
        const { store } = await context.session()
        const what = topic === undefined ? 'everything' : `the topic '${printable(topic)}'`
        const resumed = await store.control.resume(topic ?? null)
        const still = await store.control.pauses()
        out.document({ topic: topic ?? null, resumed, stillPaused: still }, () =>
          resumed ? `the pause of ${what} has ended` : `there was no pause of ${what}`,
        )
        if (still.length === 0 || out.json) return
        const names = still.map((pause) => printable(pause.topic ?? 'everything'))
        out.note(`still paused: ${names.join(', ')}`)
      }),
    )
}
