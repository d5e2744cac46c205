// aftercommit migrate: creates or updates the tables, or prints what that would run.
import { appliedNames, pendingFiles } from '../../store/migrate.ts'
import { migrationScript } from '../../store/migration-script.ts'
import type { AddCommand } from '../command.ts'
import type { Session } from '../context.ts'

interface Options {
  readonly partitioned?: boolean
  readonly sql?: boolean
  readonly all?: boolean
}

export const migrateCommand: AddCommand = (program, run) => {
  program
    .command('migrate')
    .description('create or update the tables')
    .option('--partitioned', 'make the table a partitioned one; there is no way back')
    .option('--sql', 'print the statements instead of running them')
    .option('--all', 'with --sql: also those that were applied; needs no database')
    .action(
      run(async (context, { partitioned = false, sql, all }: Options) => {
        const { out } = context
        if (sql) {
          const isAlone = all || (await context.databaseUrl()) === null
          const db = isAlone ? null : (await context.session()).opened.db
          const script = await migrationScript(db, 'outbox', await context.table(), { partitioned })
          if (script === '') out.note('the tables are up to date; there is nothing to run')
          out.document({ sql: script }, () => script.trimEnd())
          return
        }
        const session = await context.session()
        const before = await findPending(session, partitioned)
        await session.store.migrate({ partitioned })
        out.document({ applied: before }, () =>
          before.length === 0 ? 'the tables are up to date' : `applied ${before.join(', ')}`,
        )
      }),
    )
}

async function findPending({ opened, table }: Session, partitioned: boolean): Promise<string[]> {
  const applied = await appliedNames(opened.db, table)
  return (await pendingFiles('outbox', partitioned))(applied ?? new Set())
}
