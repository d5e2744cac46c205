// Nest's logger in the shape that the outbox takes. Any logger that an application gives to Nest takes plain text, so the
// fields go into it.
import { inspect } from 'node:util'
import { Logger as NestLogger } from '@nestjs/common'
import { describeError } from '../errors.ts'
import type { Logger } from '../runtime/logger.ts'
import { DEFAULT_NAME } from './tokens.ts'

export function nestLogger(name: string): Logger {
  const logger = new NestLogger(name === DEFAULT_NAME ? 'Outbox' : `Outbox:${name}`)
  return {
    debug: (fields, message) => logger.debug(lineOf(fields, message)),
    info: (fields, message) => logger.log(lineOf(fields, message)),
    warn: (fields, message) => logger.warn(lineOf(fields, message)),
    error: (fields, message) => logger.error(lineOf(fields, message), stackOf(fields)),
  }
}

function lineOf(fields: object, message: string): string {
  const shown = Object.entries(fields).map(([name, value]) => [
    name,
    value instanceof Error ? describeError(value) : (value as unknown),
  ])
  if (shown.length === 0) return message
  return `${message} ${inspect(Object.fromEntries(shown), { breakLength: Infinity, depth: 4 })}`
}

/** Of what was thrown first: for a handler that failed, where it threw. */
function stackOf(fields: object): string | undefined {
  let error = Object.values(fields).find((value): value is Error => value instanceof Error)
  while (error?.cause instanceof Error) error = error.cause
  return error?.stack
}
