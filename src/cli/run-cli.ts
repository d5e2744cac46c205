// Runs one command and returns its exit code. Whatever goes wrong is explained here, once.
import { CommanderError } from 'commander'
import { runWith } from './command.ts'
import { Context } from './context.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import { explain } from './explain.ts'
import { Output, type Streams } from './output/output.ts'
import { createProgram } from './program.ts'

export interface Surroundings extends Streams {
  readonly env: NodeJS.ProcessEnv
  readonly version: string
}

export async function runCli(
  args: readonly string[],
  { env, version, ...streams }: Surroundings,
): Promise<ExitCode> {
  let exitCode: ExitCode = EXIT.fine
  let context: Context | null = null
  const run = runWith(
    (options) => {
      const { json = false, exactTimes = false } = options
      context = new Context(new Output(streams, { json, exactTimes }), options, env)
      return context
    },
    (code) => {
      exitCode = code
    },
  )
  try {
    await createProgram(version, run, streams).parseAsync(args, { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError && isHelp(error)) {
      return error.exitCode === 0 ? EXIT.fine : EXIT.usage
    }
    return await report(error, context, args, streams)
  }
}

/** Help or the version was printed already. */
function isHelp({ code }: CommanderError): boolean {
  return ['commander.help', 'commander.helpDisplayed', 'commander.version'].includes(code)
}

async function report(
  thrown: unknown,
  context: Context | null,
  args: readonly string[],
  streams: Streams,
): Promise<ExitCode> {
  const url = (await context?.databaseUrl().catch(() => null)) ?? null
  const { exitCode, code, message } = explain(thrown, url)
  // What is wrong with the arguments is found before the options are known.
  const json = args.includes('--json')
  const out = context?.out ?? new Output(streams, { json, exactTimes: false })
  out.error(code, message)
  return exitCode
}
