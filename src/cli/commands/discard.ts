// aftercommit discard: deletes events that cannot be delivered, for good.
import { FailureDesk } from '../../upkeep/failures.ts'
import type { AddCommand } from '../command.ts'
import { requireAll, select, type SelectionOptions, withSelection } from '../failure-selection.ts'
import { confirm, countEvents } from '../output/confirm.ts'
import { silentParts } from '../silent-parts.ts'

interface Options extends SelectionOptions {
  readonly failing?: boolean
}

export const discardCommand: AddCommand = (program, run) => {
  withSelection(program.command('discard'))
    .description('delete dead letters for good')
    .option('--failing', 'failing events that wait for their next attempt, instead of dead letters')
    .action(
      run(async (context, options: Options, ids: readonly string[] = []) => {
        const { out } = context
        const session = await context.session()
        const status = options.failing ? 'failed' : 'dead_letter'
        const { filter, count } = await select(session, ids, options, status)
        const desk = new FailureDesk(silentParts(session.store))
        const what = `delete ${countEvents(count)} for good`
        if (count.count > 0) await confirm(out, { what, yes: options.yes ?? false })
        const discarded = count.count > 0 ? await desk.discard(filter) : 0
        out.document({ discarded }, () => `${discarded} discarded`)
        const why = options.failing
          ? 'it is not a failing event, or is being tried right now; to discard dead letters, leave out --failing'
          : 'it is not a dead letter; to discard failing events, use --failing'
        requireAll(ids, discarded, 'discarded', why)
        if (discarded === 0 && !out.json) out.note('nothing matched')
      }),
    )
}
