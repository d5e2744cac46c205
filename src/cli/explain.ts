// What is printed when a command fails: the reason and a remedy, never the connection string.
import { CommanderError } from 'commander'
import { messageOf, OutboxError, OutboxOptionsError } from '../errors.ts'
import { CliError } from './cli-error.ts'
import { hostOf, withoutSecrets } from './database-url.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'

export interface Explained {
  readonly exitCode: ExitCode
  readonly code: string
  readonly message: string
}

export function explain(error: unknown, url: string | null): Explained {
  const { exitCode, code, message } = interpret(error, url)
  return { exitCode, code, message: withoutSecrets(message, url) }
}

function interpret(error: unknown, url: string | null): Explained {
  if (error instanceof CommanderError) {
    const message = error.message.replace(/^error: /, '')
    return { exitCode: EXIT.usage, code: 'USAGE', message }
  }
  if (error instanceof CliError) {
    const { exitCode, code, message } = error
    return { exitCode, code, message }
  }
  if (error instanceof OutboxOptionsError) {
    return { exitCode: EXIT.usage, code: error.code, message: error.message }
  }
  const remedy = databaseRemedy(error, url)
  if (remedy) return { exitCode: EXIT.failed, ...remedy }
  const code = error instanceof OutboxError ? error.code : 'FAILED'
  return { exitCode: EXIT.failed, code, message: messageOf(error) }
}

const UNREACHABLE = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ETIMEDOUT',
  'ECONNRESET',
  'CONNECT_TIMEOUT',
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
]

const TABLE_REMEDY =
  'run aftercommit migrate, or name the right table with --schema and --table; aftercommit doctor lists what is missing'

function databaseRemedy(
  error: unknown,
  url: string | null,
): { code: string; message: string } | null {
  const codes = codesOf(error)
  const unreachable = codes.find((code) => UNREACHABLE.includes(code))
  const message = messageOf(error)
  if (unreachable) {
    const host = url === null ? 'the host' : hostOf(url)
    return {
      code: 'UNREACHABLE',
      message: `cannot reach the database at ${host} (${unreachable}); check that it runs, and the host and port in DATABASE_URL or --database-url`,
    }
  }
  if (codes.includes('28P01') || codes.includes('28000')) {
    const code = 'ACCESS_DENIED'
    return { code, message: `${message}; check the user and the password of the database URL` }
  }
  if (codes.includes('3D000')) {
    const code = 'NO_DATABASE'
    return { code, message: `${message}; check the name at the end of the database URL` }
  }
  if (codes.includes('42501')) {
    return {
      code: 'ACCESS_DENIED',
      message: `${firstPart(message)}; use a role that may, such as that of the application; aftercommit doctor lists what this one lacks, with the statements that grant it`,
    }
  }
  if (codes.includes('TABLE_MISSING')) {
    return { code: 'TABLE_MISSING', message: `${firstPart(message)}; ${TABLE_REMEDY}` }
  }
  return null
}

/** The library's own remedies are for code; those of the CLI replace them. */
function firstPart(message: string): string {
  return message.split('; ')[0]!
}

/** The codes of an error and of all its causes. */
function codesOf(thrown: unknown): string[] {
  const codes: string[] = []
  const waiting = [thrown]
  while (waiting.length > 0) {
    const error = waiting.pop()
    if (!(error instanceof Error)) continue
    const { code, errors } = error as { code?: unknown; errors?: unknown }
    if (typeof code === 'string') codes.push(code)
    waiting.push(error.cause, ...(Array.isArray(errors) ? (errors as unknown[]) : []))
  }
  return codes
}
