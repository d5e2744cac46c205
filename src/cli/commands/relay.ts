// aftercommit relay: a process that only runs the fallback, with the outbox of the config file, until a signal ends it. Its
// log lines go to stdout.
import { requireMethods } from '../../checks/checks.ts'
import { usageError } from '../cli-error.ts'
import type { AddCommand } from '../command.ts'
import { relayLogger } from '../relay-log.ts'
import { nextSignal } from '../signals.ts'

export const relayCommand: AddCommand = (program, run) => {
  program
    .command('relay')
    .description('run the fallback of the outbox in the config file, until SIGTERM or SIGINT')
    .action(
      run(async (context) => {
        const { outbox: create } = await context.config()
        if (!create) {
          throw usageError(
            'relay needs the outbox of a config file; set outbox: (relay) => createOutbox({ ..., ...relay }) in aftercommit.config.ts',
          )
        }
        const logger = relayLogger(context.out)
        const ended = nextSignal(['SIGTERM', 'SIGINT'])
        // What was saved before a switch to relay: 'cdc' is still this library's to send.
        const own = { relay: 'outbox', immediate: false, poller: true, enabled: true } as const
        const outbox = await create({ ...own, logger })
        requireMethods(
          'outbox of the config file',
          outbox,
          ['start', 'stop'],
          'what createOutbox() returns',
        )
        await outbox.start()
        logger.info({ pid: process.pid }, 'relay started')
        logger.info({ signal: await ended }, 'relay stopping')
        await outbox.stop()
        logger.info({}, 'relay stopped')
      }),
    )
}
