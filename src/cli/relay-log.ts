// The log of commands that run until a signal ends them: one line each, JSON or text. The library never logs payloads.
import { describeError } from '../errors.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Output } from './output/output.ts'

/** To stdout: for a relay, the log is the result. */
export function relayLogger(out: Output): Logger {
  return logger((value, text) => out.line(value, text))
}

/** To stderr. */
export function noteLogger(out: Output): Logger {
  return logger((value, text) => out.note(out.json ? JSON.stringify(value) : text()))
}

function logger(print: (value: object, text: () => string) => void): Logger {
  const log = (level: string) => (given: object, message: string) => {
    const fields = withReadableError(given)
    const time = new Date().toISOString()
    print({ time, level, message, ...fields }, () => {
      const about = Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : ''
      return `${time} ${level.padEnd(5)} ${message}${about}`
    })
  }
  return { debug: () => {}, info: log('info'), warn: log('warn'), error: log('error') }
}

function withReadableError(fields: object): object {
  const { err, ...rest } = fields as { err?: unknown }
  return err === undefined ? fields : { ...rest, err: describeError(err) }
}
