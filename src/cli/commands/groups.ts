// aftercommit groups: what failed, by cause. The key of a group selects it for retry and discard.
import type { FailureGroup } from '../../store/outbox/failure-store.ts'
import { FailureDesk } from '../../upkeep/failures.ts'
import { wholeNumber } from '../arguments.ts'
import type { AddCommand } from '../command.ts'
import { groupKey } from '../failure-selection.ts'
import { silentParts } from '../silent-parts.ts'
import { formatTable, printable, shorten } from '../output/table.ts'
import { colourStatus } from './event-row.ts'

interface Options {
  readonly limit: number
}

const LONGEST_ERROR = 100
const LONGEST_EXAMPLE = 300

export const groupsCommand: AddCommand = (program, run) => {
  program
    .command('groups')
    .alias('failures')
    .description('dead letters and failing events, grouped by cause')
    .option('--limit <n>', 'how many groups, the largest first', wholeNumber(1, 1_000), 50)
    .action(
      run(async (context, { limit }: Options) => {
        const { out } = context
        const { store, now } = await context.session()
        const groups = await new FailureDesk(silentParts(store)).groups({ limit })
        const nowMs = await now()
        out.document(
          groups.map((group) => ({ key: groupKey(group), ...group })),
          () =>
            groups.length === 0
              ? 'nothing has failed'
              : formatTable(
                  groups.map((group) => ({
                    key: groupKey(group),
                    count: `${group.exact ? '' : '>='}${group.count}`,
                    status: colourStatus(group.status, out),
                    type: printable(group.type),
                    topic: printable(group.topic),
                    first: out.time(group.firstAt, nowMs),
                    last: out.time(group.lastAt, nowMs),
                    example: group.example.id,
                    error: shorten(group.error, LONGEST_ERROR),
                  })),
                  { width: out.width, below: groups.map(describeExample) },
                ),
        )
      }),
    )
}

/** What a placeholder stands for is often what one looks for. */
function describeExample({ error, example }: FailureGroup): string[] {
  const [line] = example.error.trim().split('\n')
  return example.error === error ? [] : [shorten(line!, LONGEST_EXAMPLE)]
}
