// aftercommit grants: prints the statements that give a role the rights that it needs. It needs no database, and runs nothing.
import { Argument, Option } from 'commander'
import { grantsScript, migrationGrants, type Purpose, PURPOSES } from '../../store/grants.ts'
import { roleName } from '../arguments.ts'
import type { AddCommand } from '../command.ts'

interface Options {
  readonly for: Purpose | 'migration'
}

export const grantsCommand: AddCommand = (program, run) => {
  program
    .command('grants')
    .description('print the SQL that gives a role the rights that it needs, and no others')
    .addArgument(new Argument('<role>', 'the role, which has to exist').argParser(roleName))
    .addOption(
      new Option('--for <purpose>', 'what the role is for')
        .choices([...PURPOSES, 'migration'])
        .default('service'),
    )
    .action(
      run(async (context, { for: purpose }: Options, role: string) => {
        const table = await context.table()
        const script =
          purpose === 'migration'
            ? migrationGrants(table, role)
            : grantsScript(table, role, purpose)
        context.out.document({ role, for: purpose, sql: script }, () => script.trimEnd())
      }),
    )
}
