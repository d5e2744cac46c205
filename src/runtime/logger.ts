// The user's logger. It has the methods of pino, so a pino instance fits as it is.
import { requireMethods } from '../checks/checks.ts'

export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

const silence = (): void => {}

/** For `logger: false`. */
export const silentLogger: Logger = { debug: silence, info: silence, warn: silence, error: silence }

/** The default: what has gone wrong in the background shows, and nothing else does. */
const consoleLogger: Logger = {
  debug: silence,
  info: silence,
  warn: (fields, message) => console.warn(`aftercommit: ${message}`, fields),
  error: (fields, message) => console.error(`aftercommit: ${message}`, fields),
}

/** Keeps a logger that throws from changing anything on the path (rule 10). */
export function guardLogger(logger: Logger): Logger {
  const guard =
    (level: keyof Logger) =>
    (fields: object, message: string): void => {
      // Errors are dropped: the logger itself failed, so there is no place left to report to.
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

export function resolveLogger(logger: Logger | false | undefined): Logger {
  if (logger === false) return silentLogger
  if (logger === undefined) return guardLogger(consoleLogger)
  requireMethods(
    'logger',
    logger,
    ['debug', 'info', 'warn', 'error'],
    'false, or pino-shaped: debug, info, warn, error',
  )
  return guardLogger(logger)
}

/**
 * The logger of the background, silent between stop() and the next start. A response of a broker may come long
 * after stop() has given up on it, when the application believes the outbox gone. Lifecycle events still report it.
 */
export class BackgroundLogger implements Logger {
  readonly #logger: Logger
  isSilent = false

  constructor(logger: Logger) {
    this.#logger = logger
  }

  debug(fields: object, message: string): void {
    if (!this.isSilent) this.#logger.debug(fields, message)
  }

  info(fields: object, message: string): void {
    if (!this.isSilent) this.#logger.info(fields, message)
  }

  warn(fields: object, message: string): void {
    if (!this.isSilent) this.#logger.warn(fields, message)
  }

  error(fields: object, message: string): void {
    if (!this.isSilent) this.#logger.error(fields, message)
  }
}
