// aftercommit purge: deletes what is past its retention now, in batches, as the cleanup of an instance does.
import { silentLogger } from '../../runtime/logger.ts'
import { previewPurge, type PurgePreview } from '../../upkeep/purge-preview.ts'
import { outboxRound } from '../../upkeep/retention.ts'
import { duration } from '../arguments.ts'
import { usageError } from '../cli-error.ts'
import type { AddCommand } from '../command.ts'
import { confirm, countEvents } from '../output/confirm.ts'
import { showProgress } from '../output/progress.ts'
import { remarkLogger } from '../relay-log.ts'

interface Options {
  readonly olderThan: number
  readonly deadLettersOlderThan?: number
  readonly dryRun?: boolean
  readonly yes?: boolean
}

const SHORTEST_MS = 1_000

export const purgeCommand: AddCommand = (program, run) => {
  program
    .command('purge')
    .description('delete published events that are past their retention')
    .requiredOption(
      '--older-than <duration>',
      'published longer ago than this: your retention',
      duration,
    )
    .option(
      '--dead-letters-older-than <duration>',
      'also dead letters that died longer ago',
      duration,
    )
    .option('--dry-run', 'print what would be deleted, and delete nothing')
    .option('--yes', 'do not ask')
    .action(
      run(async (context, options: Options) => {
        const { out } = context
        const { store, preview } = await context.session()
        const rules = {
          retentionMs: requireAge('--older-than', options.olderThan),
          deadLetterRetentionMs:
            options.deadLettersOlderThan === undefined
              ? null
              : requireAge('--dead-letters-older-than', options.deadLettersOlderThan),
          logger: out.json ? silentLogger : remarkLogger(out),
        }
        const found = await previewPurge({ partitions: store.partitions, preview }, rules)
        if (options.dryRun) {
          out.document(found, () => `would delete ${describe(found)}`)
          return
        }
        const total = found.published.count + found.deadLetters.count
        const what = `delete ${describe(found)} for good`
        const isNone = total === 0 && found.published.exact && found.deadLetters.exact
        if (!isNone) await confirm(out, { what, yes: options.yes ?? false })
        const progress = showProgress(out, 'deleting', total)
        let deleted = 0
        for await (const count of outboxRound(store, rules)()) {
          deleted += count
          progress.advance(count)
        }
        progress.end()
        out.document({ deleted }, () => `${deleted} deleted`)
        if (deleted === 0 && total > 0 && !out.json) {
          out.note('another instance is deleting at this moment, so this command deleted nothing')
        }
      }),
    )
}

function requireAge(option: string, ms: number): number {
  if (ms >= SHORTEST_MS) return ms
  throw usageError(`${option} must be at least a second; did you mean days, such as 7d?`)
}

function describe({ published, deadLetters, partitions }: PurgePreview): string {
  const parts = [countEvents(published, 'published event')]
  if (deadLetters.count > 0) parts.push(countEvents(deadLetters, 'dead letter'))
  const names = `${published.exact ? '' : 'at least '}the partitions ${partitions.join(', ')}`
  const dropped = partitions.length > 0 ? `, with ${names}` : ''
  return `${parts.join(' and ')}${dropped}`
}
