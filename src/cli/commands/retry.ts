// aftercommit retry: dead letters get all their attempts again; with --now, events that rest after a failure go out now.
import { FailureDesk } from '../../upkeep/failures.ts'
import type { AddCommand } from '../command.ts'
import { requireAll, select, type SelectionOptions, withSelection } from '../failure-selection.ts'
import { confirm, countEvents } from '../output/confirm.ts'
import { silentParts } from '../silent-parts.ts'

interface Options extends SelectionOptions {
  readonly now?: boolean
}

export const retryCommand: AddCommand = (program, run) => {
  withSelection(program.command('retry'))
    .description('send dead letters again')
    .option('--now', 'failing events that wait for their next attempt, instead of dead letters')
    .action(
      run(async (context, options: Options, ids: readonly string[] = []) => {
        const { out } = context
        const session = await context.session()
        const status = options.now ? 'failed' : 'dead_letter'
        const { filter, count } = await select(session, ids, options, status)
        if (count.count > 1) {
          await confirm(out, { what: `retry ${countEvents(count)}`, yes: options.yes ?? false })
        }
        const retried = await new FailureDesk(silentParts(session.store)).retry(filter)
        out.document({ retried }, () => `${retried} retried`)
        const why = options.now
          ? 'it is not a failing event, or is being tried right now; to retry dead letters, leave out --now'
          : 'it is not a dead letter; to retry failing events, use --now'
        requireAll(ids, retried, 'retried', why)
        if (retried === 0 && !out.json) out.note('nothing matched')
      }),
    )
}
