// The logger the user may plug in. Its shape is pino's, so that a pino instance fits as it is.
import { requireMethods } from './validate.ts'

export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

const silence = (): void => {}

/** The default: a library does not write to somebody else's console. */
export const silentLogger: Logger = { debug: silence, info: silence, warn: silence, error: silence }

/** A logger that throws changes nothing on the path (rule 10). */
export function guardLogger(logger: Logger): Logger {
  const guard =
    (level: keyof Logger) =>
    (fields: object, message: string): void => {
      // There is nobody left to tell: the logger itself is what failed.
      try {
        const returned: unknown = logger[level](fields, message)
        if (returned instanceof Promise) returned.catch(() => {})
      } catch {}
    }
  return {
    debug: guard('debug'),
    info: guard('info'),
    warn: guard('warn'),
    error: guard('error'),
  }
}

export function resolveLogger(logger: Logger | undefined): Logger {
  if (logger === undefined) return silentLogger
  requireMethods(
    'logger',
    logger,
    ['debug', 'info', 'warn', 'error'],
    'pino-shaped: debug, info, warn, error',
  )
  return guardLogger(logger)
}
