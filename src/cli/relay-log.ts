// What the library logs while a command runs, one line each. It never logs payloads, but errors and names that others wrote.
import { describeError } from '../errors.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Output } from './output/output.ts'
import { printable } from './output/table.ts'

/** To stdout: for a relay, the log is the result. */
export function relayLogger(out: Output): Logger {
  return logger((value, text) => out.line(value, text))
}

/** To stderr. */
export function noteLogger(out: Output): Logger {
  return logger((value, text) => out.note(out.json ? JSON.stringify(value) : text()))
}

/** To stderr as remarks, without time and level: for a command that ends by itself. */
export function remarkLogger(out: Output): Logger {
  const note = (fields: object, message: string) => {
    const { err, ...rest } = fields as { err?: unknown }
    out.note(printable(`${message}${about(rest)}${err instanceof Error ? `: ${err.message}` : ''}`))
  }
  return { debug: note, info: note, warn: note, error: note }
}

function logger(print: (value: object, text: () => string) => void): Logger {
  const log = (level: string) => (given: object, message: string) => {
    const fields = withReadableError(given)
    const time = new Date().toISOString()
    print({ time, level, message, ...fields }, () => {
      return `${time} ${level.padEnd(5)} ${printable(`${message}${about(fields)}`)}`
    })
  }
  return { debug: () => {}, info: log('info'), warn: log('warn'), error: log('error') }
}

// JSON escapes most control characters, but not those of 0x7f to 0x9f.
function about(fields: object): string {
  return Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : ''
}

function withReadableError(fields: object): object {
  const { err, ...rest } = fields as { err?: unknown }
  return err === undefined ? fields : { ...rest, err: describeError(err) }
}
