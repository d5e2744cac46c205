// An error of the CLI itself. Its message names the remedy.
import { EXIT, type ExitCode } from './exit-codes.ts'

export class CliError extends Error {
  override readonly name = 'CliError'
  readonly exitCode: ExitCode
  /** As `--json` prints it. */
  readonly code: string

  constructor(
    exitCode: ExitCode,
    message: string,
    { code = 'FAILED', cause }: { code?: string; cause?: unknown } = {},
  ) {
    super(message, { cause })
    this.exitCode = exitCode
    this.code = code
  }
}

export function usageError(message: string): CliError {
  return new CliError(EXIT.usage, message, { code: 'USAGE' })
}

/** An event or a group that was named and is not there. */
export function notFound(message: string): CliError {
  return new CliError(EXIT.failed, message, { code: 'NOT_FOUND' })
}
