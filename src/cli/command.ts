// How a command is declared and run: it gets the shared context and its own options, and returns its exit code.
import type { Command } from 'commander'
import type { Context, GlobalOptions } from './context.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'

/** Adds itself to the program. `run` makes the action of the command. */
export type AddCommand = (program: Command, run: Run) => void

/** An action gets its options and then its arguments, as their parsers have checked them. */
export type Run = (
  action: (context: Context, options: never, ...args: never[]) => Promise<ExitCode | void>,
) => (...given: unknown[]) => Promise<void>

export function runWith(
  open: (options: GlobalOptions) => Context,
  done: (exitCode: ExitCode) => void,
): Run {
  return (action) =>
    async (...given) => {
      const command = given.at(-1) as Command
      const options = command.optsWithGlobals()
      const context = open(options)
      try {
        const args = given.slice(0, -2) as never[]
        done((await action(context, options as never, ...args)) ?? EXIT.fine)
      } catch (error) {
        throw await context.explainLock(error)
      } finally {
        await context.close()
      }
    }
}
