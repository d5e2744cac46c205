// aftercommit dashboard: serves the dashboard of one table until a signal ends it. Actions are logged to stderr.
import { type Command, Option } from 'commander'
import { handlerOf } from '../../dashboard/handler.ts'
import { duration, wholeNumber } from '../arguments.ts'
import { usageError } from '../cli-error.ts'
import type { AddCommand } from '../command.ts'
import { checkDoor, doorKeeper, type DoorOptions } from '../dashboard/door.ts'
import { openedSource } from '../dashboard/opened-source.ts'
import { Permission } from '../dashboard/permission.ts'
import { serve } from '../dashboard/server.ts'
import { describeUser } from '../describe-user.ts'
import { noteLogger } from '../relay-log.ts'
import { nextSignal } from '../signals.ts'

interface Options extends DoorOptions {
  readonly port: number
  readonly allowHost?: readonly string[]
  readonly readOnly?: boolean
  readonly by?: string
  readonly purgeOlderThan?: number
  readonly purgeDeadLettersOlderThan?: number
}

export const dashboardCommand: AddCommand = (program, run) => {
  withOptions(program.command('dashboard')).action(
    run(async (context, options: Options) => {
      const { out } = context
      const { host, port, token, allowHost = [], by = describeUser() } = options
      checkDoor(options)
      const retention = retentionOf(options)
      const session = await context.session()
      const permission = new Permission(session, options.readOnly === true)
      const reason = await permission.whyReadOnly()
      const ended = nextSignal(['SIGINT', 'SIGTERM'])
      const source = openedSource(session, retention, noteLogger(out))
      const authorize = doorKeeper(token, async () => ({ by, mayAct: await permission.mayAct() }))
      const handler = handlerOf(source, { authorize, basePath: '/', hosts: [host, ...allowHost] })
      const server = await serve(handler, { host, port })
      const { url } = server
      out.line({ url, readOnly: reason !== null, token: token !== undefined }, () => {
        const limits = reason === null ? '' : `, read-only (${reason})`
        return `dashboard at ${url}${limits}${token === undefined ? '' : '; it asks for the token'}; Ctrl-C ends it`
      })
      await ended
      await server.close()
    }),
  )
}

function withOptions(command: Command): Command {
  return command
    .description('serve a page that shows the outbox and acts on it, until Ctrl-C')
    .option('--port <n>', 'the port; 0 for any that is free', wholeNumber(0, 65_535), 4_411)
    .option('--host <address>', 'the address to listen on', '127.0.0.1')
    .addOption(
      new Option('--token <token>', 'the token that a browser must send').env('AFTERCOMMIT_TOKEN'),
    )
    .option('--allow-host <name...>', 'further host names that it accepts')
    .option('--read-only', 'permit no changes')
    .option('--by <name>', 'who acts, for the log and for pauses (default: user and host)')
    .option(
      '--purge-older-than <duration>',
      'what a purge deletes: published events older than this',
      duration,
    )
    .option(
      '--purge-dead-letters-older-than <duration>',
      'also dead letters older than this',
      duration,
    )
}

const SHORTEST_MS = 1_000

function retentionOf({ purgeOlderThan, purgeDeadLettersOlderThan }: Options) {
  for (const ms of [purgeOlderThan, purgeDeadLettersOlderThan]) {
    if (ms !== undefined && ms < SHORTEST_MS) {
      throw usageError('a retention must be at least a second; did you mean days, such as 7d?')
    }
  }
  if (purgeOlderThan === undefined) {
    if (purgeDeadLettersOlderThan === undefined) return null
    throw usageError('--purge-dead-letters-older-than needs --purge-older-than beside it')
  }
  return { retentionMs: purgeOlderThan, deadLetterRetentionMs: purgeDeadLettersOlderThan ?? null }
}
