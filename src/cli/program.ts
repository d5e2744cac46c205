// The program: its commands and the options that all of them take, parsed by commander.
import { Command } from 'commander'
import type { AddCommand, Run } from './command.ts'
import { cdcConfigCommand } from './commands/cdc-config.ts'
import { dashboardCommand } from './commands/dashboard.ts'
import { discardCommand } from './commands/discard.ts'
import { doctorCommand } from './commands/doctor.ts'
import { grantsCommand } from './commands/grants.ts'
import { groupsCommand } from './commands/groups.ts'
import { instancesCommand } from './commands/instances.ts'
import { listCommand } from './commands/list.ts'
import { migrateCommand } from './commands/migrate.ts'
import { pauseCommand } from './commands/pause.ts'
import { purgeCommand } from './commands/purge.ts'
import { relayCommand } from './commands/relay.ts'
import { rerouteCommand } from './commands/reroute.ts'
import { resumeCommand } from './commands/resume.ts'
import { retryCommand } from './commands/retry.ts'
import { showCommand } from './commands/show.ts'
import { statusCommand } from './commands/status.ts'
import { tailCommand } from './commands/tail.ts'
import type { Streams } from './output/output.ts'

const COMMANDS: readonly AddCommand[] = [
  migrateCommand,
  grantsCommand,
  statusCommand,
  listCommand,
  showCommand,
  tailCommand,
  groupsCommand,
  retryCommand,
  discardCommand,
  pauseCommand,
  resumeCommand,
  rerouteCommand,
  instancesCommand,
  purgeCommand,
  doctorCommand,
  relayCommand,
  cdcConfigCommand,
  dashboardCommand,
]

export function createProgram(version: string, run: Run, { stdout, stderr }: Streams): Command {
  const program = new Command('aftercommit')
    .description('Inspects and maintains an aftercommit outbox: its table, events and instances.')
    .version(version, '--version', 'print the version')
    .option('--database-url <url>', 'the database (default: the variable DATABASE_URL)')
    .option('--config <file>', 'the config file (default: aftercommit.config.{ts,mts,js,mjs})')
    .option('--no-config', 'use no config file')
    .option('--schema <name>', "the schema of the outbox table (default: 'public')")
    .option('--table <name>', "the name of the outbox table (default: 'outbox')")
    .option('--json', 'print JSON')
    .option('--exact-times', 'print absolute times, not relative to now')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => void stdout.write(text),
      writeErr: (text) => void stderr.write(text),
      // main.ts prints errors.
      outputError: () => {},
    })
    .exitOverride()
  for (const add of COMMANDS) add(program, run)
  return program
}
